"""Mentions between pages: a pure function of the pages that are there."""

from itertools import permutations

import pytest

from apps.core.db.sessions import principal_session
from apps.graph.models import PageEdge
from apps.graph.services import PassageItem, delete_passages, write_passages
from apps.graph.services.pages import mentions
from tests.support.factories import make_principal, make_world

REPO = "acme/wiki"
PAGES = {
    "billing": "See invoices and re-billing.",
    "invoices": "Made by billing; see also taxes.",
    "taxes": "Nothing to link, taxes says taxes.",
    "re-billing": "About invoices.",
    "home": "billing invoices taxes re-billing",
}
EDGES = {
    ("billing", "invoices"),
    ("billing", "re-billing"),
    ("invoices", "billing"),
    ("invoices", "taxes"),
    ("re-billing", "invoices"),
    ("home", "billing"),
    ("home", "invoices"),
    ("home", "taxes"),
    ("home", "re-billing"),
}


def page(slug, text=None, repo=REPO):
    return PassageItem(
        identity=f"pages/{slug}.md",
        type="wiki_doc",
        repo=repo,
        path=f"pages/{slug}.md",
        text=text or PAGES[slug],
    )


def edges(principal):
    with principal_session(principal):
        return set(PageEdge.objects.values_list("src", "dst"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see billing.", {"billing"}),
        ("re-billing", set()),
        ("billings", set()),
        ("Billing", set()),
        ("(billing)", {"billing"}),
        ("prebilling then billing", {"billing"}),
        ("BILLINGbillingX", {"billing"}),
        ("billing2", set()),
        ("", set()),
    ],
)
def test_a_slug_is_mentioned_exactly_and_alone(text, found) -> None:
    assert mentions(text, ["billing"]) == found


@pytest.mark.django_db
def test_every_order_of_indexing_gives_the_same_edges() -> None:
    world = make_world()
    for order in permutations(PAGES):
        principal = make_principal(world.workspace)
        with principal_session(principal):
            for slug in order:
                write_passages(items=[page(slug)])
        assert edges(principal) == EDGES


@pytest.mark.django_db
def test_indexing_again_changes_nothing_and_rewording_only_what_it_must() -> None:
    principal = make_world().principal
    with principal_session(principal):
        write_passages(items=[page(slug) for slug in PAGES])
        before = set(PageEdge.objects.values_list("id", flat=True))
        write_passages(items=[page(slug) for slug in reversed(PAGES)])
        assert set(PageEdge.objects.values_list("id", flat=True)) == before
        write_passages(items=[page("home", "only taxes now")])
    kept = {edge for edge in EDGES if edge[0] != "home"} | {("home", "taxes")}
    assert edges(principal) == kept


@pytest.mark.django_db
def test_no_edge_touches_a_deleted_page() -> None:
    principal = make_world().principal
    with principal_session(principal):
        results = write_passages(items=[page(slug) for slug in PAGES])
        gone = results[list(PAGES).index("invoices")].node_id
        delete_passages(node_ids=[gone])
    assert edges(principal) == {edge for edge in EDGES if "invoices" not in edge}


@pytest.mark.django_db
def test_repositories_and_owners_are_apart() -> None:
    world = make_world()
    other = make_principal(world.workspace)
    with principal_session(world.principal):
        write_passages(items=[page("billing"), page("invoices", repo="acme/other")])
    with principal_session(other):
        write_passages(items=[page("invoices")])
    assert edges(world.principal) == set()
    assert edges(other) == set()
