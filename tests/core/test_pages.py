"""Keyset pages and their cursors."""

import base64
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from apps.accounts.models import Principal
from apps.core.db.sessions import staff_session
from apps.core.pages import Binding, KeysetPage, decode_cursor, encode_cursor
from apps.core.problems import UnknownCursor
from tests.support.factories import make_principal, make_superuser, make_workspace

HERE = Binding("owner-1", "traces", ("-recorded_at", "-id"), {"mode": "search"})
AT = datetime(2026, 3, 1, 12, 0, 0, 123457, tzinfo=UTC)
ID = UUID("0192f000-0000-7000-8000-000000000001")


def unknown(binding, cursor):
    with pytest.raises(UnknownCursor) as refused:
        decode_cursor(binding, cursor)
    return refused.value.document()["code"] == "unknown_cursor"


@given(
    st.sampled_from(["next", "previous"]),
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),
    st.uuids(),
    st.integers(),
    st.text(max_size=30),
)
def test_a_cursor_is_exact_to_the_microsecond(direction, at, row, number, text):
    position = (at.replace(tzinfo=UTC), row, number, text.encode("utf-8", "ignore").decode())
    assert decode_cursor(HERE, encode_cursor(HERE, direction, position)) == (direction, position)


def test_a_cursor_is_short_and_opaque():
    cursor = encode_cursor(HERE, "next", (AT, ID))
    assert len(cursor) <= 128
    assert "owner-1" not in base64.urlsafe_b64decode(cursor + "==").decode("latin-1")


@pytest.mark.parametrize(
    "other",
    [
        Binding("owner-2", HERE.listing, HERE.order, HERE.filters),
        Binding(HERE.owner, "receipts", HERE.order, HERE.filters),
        Binding(HERE.owner, HERE.listing, ("recorded_at", "id"), HERE.filters),
        Binding(HERE.owner, HERE.listing, HERE.order, {"mode": "scan"}),
        Binding(HERE.owner, HERE.listing, HERE.order, None),
    ],
)
def test_a_cursor_of_another_owner_listing_ordering_or_filter_is_unknown(other):
    assert unknown(other, encode_cursor(HERE, "next", (AT, ID)))


def test_edited_truncated_and_invented_cursors_are_unknown():
    cursor = encode_cursor(HERE, "next", (AT, ID))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for place, letter in enumerate(cursor):
        after = alphabet[(alphabet.index(letter) + 1) % 64]
        assert unknown(HERE, cursor[:place] + after + cursor[place + 1 :])
    for length in range(len(cursor)):
        assert unknown(HERE, cursor[:length])
    for invented in ("", "x", "=", cursor + "=", cursor + "A", cursor + "\n", "é", "A" * 5000, "null", "0"):
        assert unknown(HERE, invented)


@given(st.text(max_size=80))
def test_any_text_is_unknown(text):
    assert unknown(HERE, text)


def test_cursors_survive_a_rotation_of_the_key():
    with override_settings(SECRET_KEY="old" * 20):
        cursor = encode_cursor(HERE, "next", (AT, ID))
    with override_settings(SECRET_KEY="new" * 20, SECRET_KEY_FALLBACKS=["old" * 20]):
        assert decode_cursor(HERE, cursor) == ("next", (AT, ID))
    with override_settings(SECRET_KEY="new" * 20):
        assert unknown(HERE, cursor)


# --- on rows ---


@pytest.fixture
def rows(db):
    """A workspace with ten principals, of which several were made at one instant."""
    superuser = make_superuser()
    workspace = make_workspace(superuser)
    made = [make_principal(workspace) for _ in range(9)]
    with staff_session(superuser):
        for number, principal in enumerate(made):
            at = AT + timedelta(microseconds=number // 4)
            Principal.objects.filter(pk=principal.principal_id).update(created_at=at)
        Principal.objects.filter(workspace=workspace, subject="shared").update(created_at=AT)
        yield Principal.objects.defer("hash_key").filter(workspace=workspace)


def page(rows, cursor=None, *, limit=3, order=("-created_at", "-id"), **more):
    return KeysetPage.of(
        rows, limit=limit, cursor=cursor, owner="o", listing="principals", order=order, **more
    )


@pytest.mark.parametrize("order", [("-created_at", "-id"), ("created_at", "id"), ("-id",), ("subject",)])
@pytest.mark.parametrize("limit", [1, 3, 4, 10, 11])
def test_pages_walk_forth_and_back_over_every_row_once(rows, order, limit):
    expected = list(rows.order_by(*order))
    assert len(expected) == 10
    found, cursor, pages = [], None, []
    while True:
        current = page(rows, cursor, limit=limit, order=order)
        found += current.items
        pages.append(current)
        cursor = current.next_cursor
        if cursor is None:
            break
    assert found == expected
    assert pages[0].previous_cursor is None
    back, cursor = list(pages[-1].items), pages[-1].previous_cursor
    while cursor is not None:
        current = page(rows, cursor, limit=limit, order=order)
        assert current.next_cursor is not None
        back = current.items + back
        cursor = current.previous_cursor
    assert back == expected


def test_an_empty_listing_has_one_empty_page(rows):
    assert page(rows.none()) == KeysetPage([], None, None)


def test_rows_that_come_and_go_disturb_nothing(rows):
    first = page(rows)
    second = page(rows, first.next_cursor)
    rows.filter(pk__in=[row.pk for row in first.items]).update(created_at=AT - timedelta(days=1))
    assert page(rows, first.next_cursor).items == second.items
    assert page(rows, second.previous_cursor).items == page(rows).items


def test_a_page_is_one_statement_with_a_row_comparison(rows, django_assert_num_queries):
    first = page(rows)
    with django_assert_num_queries(1) as captured:
        page(rows, first.next_cursor)
    sql = captured.captured_queries[0]["sql"]
    assert '("accounts_principal"."created_at", "accounts_principal"."id") < (' in sql
    assert "COUNT" not in sql


def test_another_filter_makes_the_cursor_unknown(rows):
    cursor = page(rows, filters={"disabled": False}).next_cursor
    assert page(rows, cursor, filters={"disabled": False}).items
    with pytest.raises(UnknownCursor):
        page(rows, cursor)


def test_a_keyset_runs_in_one_direction(rows):
    with pytest.raises(ValueError):
        page(rows, order=("-created_at", "id"))
