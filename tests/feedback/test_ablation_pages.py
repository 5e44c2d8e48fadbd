"""What staff see of an ablation: counts and tiers; the text only with a reason."""

import re
from html import unescape
from uuid import UUID

import pytest
from django.test import Client

from apps.core.db.sessions import principal_session
from apps.feedback.models import Ablation
from apps.graph.services.passages import delete_passages
from tests.feedback.test_ablation_lifetime import made
from tests.support.factories import make_staff, make_world

pytestmark = pytest.mark.django_db

LIST = "/admin/feedback/ablation/"


@pytest.fixture
def ablation(world):
    made(world.principal)
    with principal_session(world.principal):
        return Ablation.objects.get()


def client(world, *grants):
    signed_in = Client()
    signed_in.force_login(make_staff(world.workspace, *grants))
    return signed_in


def words(response):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", response.content.decode())))


def reveal(signed_in, ablation):
    url = f"{LIST}{ablation.pk}/reveal/"
    html = signed_in.get(url).content.decode()
    hidden = dict(re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', html))
    return signed_in.post(url, {**{k: unescape(v) for k, v in hidden.items()}, "reason": "support case 41"})


def test_list_and_page_say_what_went_and_what_it_was_worth(world, ablation) -> None:
    viewer = client(world, "view_traces")
    listed = words(viewer.get(LIST))
    assert "load-bearing" in listed
    assert f"…{str(ablation.node_ids[0])[-7:]}" in listed
    page = words(viewer.get(f"{LIST}{ablation.pk}/change/"))
    assert "Context without 1 entry" in page
    assert f"{ablation.baseline_tokens} → {ablation.counterfactual_tokens}" in page
    assert "+1.0" in page
    assert "Rollback" not in page
    assert "Reveal…" not in page
    assert viewer.get(f"{LIST}{ablation.pk}/reveal/").status_code == 404
    stranger = client(make_world(), "view_traces", "reveal_text")
    assert stranger.get(f"{LIST}{ablation.pk}/reveal/").status_code in (403, 404)


def test_revealing_the_text_takes_a_reason_and_is_written_down(world, ablation) -> None:
    revealer = client(world, "view_traces", "reveal_text", "audit")
    answer = reveal(revealer, ablation)
    assert "Rollback of billing" in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    trail = revealer.get(f"{LIST}{ablation.pk}/change/").content.decode()
    assert "feedback.reveal_context" in trail
    assert "support case 41" in trail
    assert "Rollback of billing" not in trail


def test_a_context_that_has_changed_is_not_shown(world, ablation) -> None:
    with principal_session(world.principal):
        delete_passages(node_ids=[UUID(str(node)) for node in ablation.node_ids])
    revealer = client(world, "view_traces", "reveal_text", "audit")
    answer = reveal(revealer, ablation)
    assert "no longer" in words(answer)
    assert "Rollback of billing" not in answer.content.decode()
