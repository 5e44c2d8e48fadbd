"""Staff pages of exports: what is out, what is overdue, and the attestation that a copy is gone."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import Error as StorageError

from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import AuditEntry
from apps.core.problems import Forbidden, NotFound
from apps.observations.exceptions import AlreadyAttested, NothingExported
from apps.observations.models import ExportRecord
from apps.observations.models.exports import Location
from apps.observations.selectors.exports import outstanding_copies
from apps.observations.services import exports
from tests.observations.test_pages import act, client, words
from tests.support.factories import World, make_staff, make_world
from tests.support.journal import record
from tests.support.statements import sent

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/observations/exportrecord/"
QUERY = "how do keys rotate"


def exported(world: World, location: Location = Location.API) -> UUID:
    with principal_session(world.principal):
        exports.export(location=location)
        return ExportRecord.objects.order_by("-id").values_list("pk", flat=True)[0]


@pytest.fixture
def copy(on: World, owner_connection: Any) -> UUID:
    """One query went out and may be kept for a day."""
    record(owner_connection, on.principal, text=QUERY, text_life=timedelta(days=1))
    return exported(on)


def expire(owner: Any, *keys: UUID) -> None:
    """Let the deadlines of copies pass, as time does; the triggers let no one else do so."""
    table = "observations_export_record"
    owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    owner.execute(
        f"UPDATE {table} SET latest_expires_at = now() - interval '2 hours' WHERE id = ANY (%s)", [list(keys)]
    )
    owner.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def test_a_copy_is_listed_by_counts_hashes_and_dates(on: World, copy: UUID) -> None:
    with staff_session(make_staff(on.workspace, "audit")):
        row = ExportRecord.objects.get(pk=copy)
    viewer = client(on, "audit")
    listed, page = words(viewer.get(LIST)), viewer.get(f"{LIST}{copy}/change/")
    assert row.envelope_sha256[:8] in listed
    assert "outstanding 1" in listed
    assert "a caller of the API owner" in listed
    assert row.envelope_sha256 in page.content.decode()
    assert f"{row.latest_expires_at:%Y-%m-%d %H:%M:%S} UTC in 22 h 59 min" in words(page)
    for text in (viewer.get(LIST).content.decode(), page.content.decode()):
        assert QUERY not in text
        assert row.owner_digest not in text
    assert "Attest deletion…" not in page.content.decode()
    assert viewer.get(f"{LIST}{copy}/attest/").status_code == 404


@pytest.mark.parametrize(
    ("grants", "sees"),
    [
        (("view_traces",), False),
        (("operate_collection",), True),
        (("review_retention",), True),
        (("audit",), True),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else "",
)
def test_who_sees_exports(on: World, copy: UUID, grants: tuple[str, ...], sees: bool) -> None:
    assert client(on, *grants).get(LIST).status_code == (200 if sees else 403)


def test_exports_of_another_workspace_are_not_there(on: World, copy: UUID) -> None:
    elsewhere = make_world()
    stranger = client(elsewhere, "operate_collection", "review_retention", "audit")
    assert "No export record yet." in words(stranger.get(LIST))
    for path in ("change/", "attest/"):
        assert stranger.get(f"{LIST}{copy}/{path}").status_code == 404
    with staff_session(make_staff(elsewhere.workspace, "operate_collection")), pytest.raises(NotFound):
        exports.attest_deletion(export_id=copy, reason="the owner wrote so")


def test_an_empty_list_says_where_exports_come_from(on: World) -> None:
    assert "Owners export their own queries through the API" in words(client(on, "audit").get(LIST))


@pytest.mark.parametrize("grant", exports.ATTEST_GRANTS)
def test_the_deletion_is_attested_once_by_name_and_with_a_reason(on: World, copy: UUID, grant: str) -> None:
    user = make_staff(on.workspace, grant)
    user.first_name, user.last_name = "Ana", "Lind"
    user.save()
    attester = client(on, grant)
    attester.force_login(user)
    preview = words(attester.get(f"{LIST}{copy}/attest/"))
    assert "no copy of these 1 query is left" in preview
    act(attester, f"{LIST}{copy}/attest/")
    page = words(attester.get(f"{LIST}{copy}/change/"))
    assert "deletion attested" in page
    assert "by Ana Lind" in page
    with staff_session(make_staff(on.workspace, "audit")):
        row = ExportRecord.objects.get(pk=copy)
        entry = AuditEntry.objects.get(action="observations.attest_deletion")
    assert row.attested_by_id == user.pk
    assert (entry.object_id, entry.reason, entry.actor_user_id) == (str(copy), "support case 41", user.pk)
    again = act(attester, f"{LIST}{copy}/attest/")
    assert again.status_code == 409
    with principal_session(on.principal):
        assert outstanding_copies() == []


def test_the_service_refuses_a_second_one_and_an_empty_export(on: World, copy: UUID) -> None:
    empty_world = make_world()
    nothing = exported(empty_world)
    with (
        staff_session(make_staff(empty_world.workspace, "operate_collection")),
        pytest.raises(NothingExported),
    ):
        exports.attest_deletion(export_id=nothing, reason="there was none")
    with staff_session(make_staff(on.workspace, "operate_collection")):
        exports.attest_deletion(export_id=copy, reason="the owner wrote so")
        with pytest.raises(AlreadyAttested):
            exports.attest_deletion(export_id=copy, reason="the owner wrote so")
    with staff_session(make_staff(on.workspace, "audit")):
        with pytest.raises(Forbidden):
            exports.attest_deletion(export_id=copy, reason="the owner wrote so")
        assert AuditEntry.objects.filter(action="observations.attest_deletion").count() == 1


def test_an_attestation_and_its_author_are_fixed(on: World, copy: UUID, owner_connection: Any) -> None:
    first, other = (make_staff(on.workspace, "operate_collection") for _ in range(2))
    for change in ({"attested_by_id": first.pk}, {"candidates": 0}):
        with staff_session(first), pytest.raises(StorageError):
            ExportRecord.objects.filter(pk=copy).update(**change)
    with staff_session(first):
        exports.attest_deletion(export_id=copy, reason="the owner wrote so")
    for change in ({"attested_at": None}, {"attested_by_id": other.pk}):
        with staff_session(other), pytest.raises(StorageError):
            ExportRecord.objects.filter(pk=copy).update(**change)
        column, value = next(iter(change.items()))
        with pytest.raises(psycopg.errors.CheckViolation):
            owner_connection.execute(
                f"UPDATE observations_export_record SET {column} = %s WHERE id = %s", [value, copy]
            )


def test_states_are_filters_and_overdue_is_danger(on: World, copy: UUID, owner_connection: Any) -> None:
    late, done = exported(on), exported(on, Location.FILE)
    nothing = exported(make_world())
    expire(owner_connection, late, done)
    with staff_session(make_staff(on.workspace, "operate_collection")):
        exports.attest_deletion(export_id=done, reason="the owner wrote so")
    viewer = client(on, "audit", "operate_collection")
    for state, key in (("outstanding", copy), ("overdue", late), ("attested", done)):
        html = viewer.get(f"{LIST}?state={state}").content.decode()
        found = [other for other in (copy, late, done, nothing) if f"{other}/change/" in html]
        assert found == [key], state
    assert f"{done}/change/" in viewer.get(f"{LIST}?location=file").content.decode()
    assert "✕ overdue" in words(viewer.get(LIST))
    page = words(viewer.get(f"{LIST}{late}/change/"))
    assert "is past its deadline, and nobody has attested" in page
    assert "overdue 2 h" in page


def test_the_start_page_counts_overdue_copies_for_those_who_may_attest(
    on: World, copy: UUID, owner_connection: Any
) -> None:
    attester = client(on, "review_retention")
    assert "exported cop" not in words(attester.get("/admin/"))
    expire(owner_connection, copy)
    text = words(attester.get("/admin/"))
    assert "1 exported copy past the deadline: nobody attested the deletion" in text
    assert "overdue 2 h" in text
    assert f"{LIST}?state=overdue" in attester.get("/admin/").content.decode()
    for other in (client(on, "audit", "view_traces"), client(make_world(), "review_retention")):
        assert "exported cop" not in words(other.get("/admin/"))
    with staff_session(make_staff(on.workspace, "operate_collection")):
        exports.attest_deletion(export_id=copy, reason="the owner wrote so")
    assert "exported cop" not in words(attester.get("/admin/"))


def test_the_list_asks_as_much_for_many_as_for_one(on: World, copy: UUID) -> None:
    viewer = client(on, "audit")

    def asked() -> int:
        with sent() as statements:
            assert viewer.get(LIST).status_code == 200
        return len(statements)

    asked()
    one = asked()
    for _ in range(5):
        exported(on)
    assert asked() == one
