"""What the page and the answer of a trace say of labels and citations."""

import json
import re
from dataclasses import replace
from html import unescape
from uuid import UUID

import pytest
from django.test import Client

from apps.core.db.sessions import principal_session
from apps.feedback.schemas import CitationsRequest
from apps.feedback.services.citations import record_citations
from tests.support.api import Api
from tests.support.factories import make_staff
from tests.support.labels import judge, keep
from tests.support.traces import issue, ranked, save

pytestmark = pytest.mark.django_db


@pytest.fixture
def receipt(me):
    return keep(me, in_context=(0, 1, 2, 3))


@pytest.fixture
def trace(me, receipt):
    rows = [replace(ranked(issue(7 + n), n), node_id=node) for n, node in enumerate(receipt.nodes)]
    with principal_session(me):
        return save(rows, retrieval_receipt_id=receipt.id).id


def page(world, trace) -> str:
    client = Client()
    client.force_login(make_staff(world.workspace, "view_traces", "review_retention"))
    html = client.get(f"/admin/traces/trace/{trace}/change/").content.decode()
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def cite(receipt, number, *nodes):
    submission = CitationsRequest(
        citation_id=UUID(int=number),
        answer_id="a",
        answer_sha256=None,
        method="model_reported",
        cited_node_ids=[str(node) for node in nodes],
    )
    record_citations(receipt_id=receipt.id, submission=submission)


def test_the_page_and_the_api_show_three_states_of_citations(world, me, receipt, trace) -> None:
    api = Api(me)

    def said():
        return json.loads(api.get(f"/v1/traces/{trace}").content)["citations"]

    assert said() == {"state": "none_reported", "sets": 0, "cited_node_ids": []}
    assert "citations none reported" in page(world, trace)
    with principal_session(me):
        cite(receipt, 1)
    assert said() == {"state": "reported_none", "sets": 1, "cited_node_ids": []}
    assert "citations reported none" in page(world, trace)
    with principal_session(me):
        cite(receipt, 2, *receipt.nodes[:2])
    assert said() == {"state": "cited", "sets": 2, "cited_node_ids": list(map(str, receipt.nodes[:2]))}
    assert "citations 2 cited" in page(world, trace)


def test_a_row_shows_the_label_in_force(world, me, receipt, trace) -> None:
    a, b, c, d = receipt.nodes
    with principal_session(me):
        first = judge(receipt.id, {a: True, b: False, c: True, d: True}, grade={str(a): 3})
        judge(receipt.id, {c: False}, by="anna")
        judge(receipt.id, withdraws=str(first), node_ids=[str(d)])
        judge(receipt.id, {d: False}, surface="context")
    text = page(world, trace)
    marks = re.findall(r"(not relevant|1 of 2 relevant|relevant, grade 3|no label)", text)
    assert marks[:4] == ["relevant, grade 3", "not relevant", "1 of 2 relevant", "no label"]


def test_erasing_says_what_goes(world, me, receipt, trace) -> None:
    with principal_session(me):
        judge(receipt.id, {receipt.nodes[0]: True})
        cite(receipt, 1)
    client = Client()
    client.force_login(make_staff(world.workspace, "view_traces", "review_retention"))
    html = client.get(f"/admin/traces/trace/{trace}/erase/").content.decode()
    assert "Erase 7 rows" in re.sub(r"\s+", " ", html)
