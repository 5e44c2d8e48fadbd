"""Import of what PRME wrote: bytes as they came, all lines or none, and nobody else's."""

import gzip
import hashlib
import json
from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.test import Client, override_settings

from apps.accounts.models import Principal
from apps.core import policies
from apps.core.db.sessions import principal_session, staff_session
from apps.operations import expiry, holds
from apps.operations.erasure import runs
from apps.operations.erasure.tasks import erase
from apps.retrieval import retention, tasks
from apps.retrieval.exceptions import CorruptReceipt, ImportConflict, ImportRefused
from apps.retrieval.imported import imported_page, prme_label_records, prme_receipt, prme_receipts
from apps.retrieval.models import PrmeLabelRecord, PrmeReceipt
from apps.retrieval.prme import iter_receipts
from apps.retrieval.prme.reading import read_lines
from apps.retrieval.requests import ReceiptsQuery
from apps.retrieval.services import import_lines, imports
from tests.support import ROOT, judged_data
from tests.support.factories import make_principal, make_staff, make_superuser, make_token, make_world
from tests.support.prme import dump, make_receipt, make_record, node_id

pytestmark = pytest.mark.django_db

FEATURES = ((0.9, 0.8, 0.4, 0.5, 0.6, 0.7), (0.6, 0.5, 0.4, 0.5, 0.6, 0.7))
FIRST, SECOND, OLD = (
    make_receipt(FEATURES, request=1, version=12),
    make_receipt(FEATURES, request=2, query="A  Question"),
    make_receipt(FEATURES, request=3, version=1),
)
LABELS = make_record(FIRST, {0: True, 1: False})


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


def client(principal, *scopes) -> Client:
    return Client(
        headers={"Authorization": f"Bearer {make_token(principal, *(scopes or ('learning', 'feedback')))}"}
    )


def post(principal, *lines):
    return client(principal).post(
        "/v1/receipts/import", b"\n".join(lines) + b"\n", content_type="application/x-ndjson"
    )


def import_all(principal, *lines):
    with principal_session(principal):
        return import_lines(lines=list(enumerate(lines, start=1)))


def rows(principal):
    with principal_session(principal):
        return PrmeReceipt.objects.count(), PrmeLabelRecord.objects.count()


def spaced(document):
    """The same document in other bytes."""
    return json.dumps(document).encode()


def test_bytes_and_checksums_stay_as_they_came(me) -> None:
    # Labels may stand before their receipt.
    answer = post(me, LABELS, dump(FIRST), spaced(SECOND), dump(OLD)).json()
    assert (answer["labels"], answer["known_receipts"], len(answer["receipts"])) == (1, 0, 3)
    for shown, raw in zip(answer["receipts"], (dump(FIRST), spaced(SECOND), dump(OLD)), strict=True):
        assert shown["stored"]
        assert shown["checksum"] == hashlib.sha256(raw).hexdigest()
        found = client(me).get(f"/v1/receipts/{shown['receipt_id']}").json()
        assert found["document"].encode() == raw
        assert (found["request_id"], found["checksum"]) == (shown["request_id"], shown["checksum"])


def test_the_same_again_changes_nothing(me) -> None:
    first = post(me, dump(FIRST), LABELS, dump(FIRST)).json()
    again = post(me, dump(FIRST), LABELS, LABELS).json()
    assert [one["receipt_id"] for one in again["receipts"]] == [first["receipts"][0]["receipt_id"]]
    assert [one["stored"] for one in again["receipts"]] == [False]
    assert (first["known_receipts"], again["known_receipts"]) == (1, 1)
    assert (again["labels"], again["known_labels"]) == (0, 2)
    assert rows(me) == (1, 1)


def test_a_record_in_another_spelling_is_the_same_record(me) -> None:
    import_all(me, dump(FIRST), LABELS)
    assert import_all(me, spaced(json.loads(LABELS))).known_labels == 1


def test_other_bytes_under_a_known_id_are_refused(me) -> None:
    import_all(me, dump(FIRST), LABELS)
    for number, lines in (
        (2, (dump(SECOND), spaced(FIRST))),
        (1, (spaced(FIRST),)),
        (2, (dump(SECOND), make_record(FIRST, {0: False}))),
    ):
        refused = post(me, *lines)
        assert (refused.status_code, refused.json()["code"], refused.json()["line"]) == (
            409,
            "receipt_conflict",
            number,
        )
        assert rows(me) == (1, 1)
    with pytest.raises(ImportConflict):
        import_all(me, dump(SECOND), spaced(SECOND))


def stored_line(document, checksum=None):
    raw = dump(document).decode()
    return dump({"receipt": raw, "checksum": checksum or hashlib.sha256(raw.encode()).hexdigest()})


def with_score(document, score):
    changed = json.loads(dump(document))
    changed["candidates"][0]["score"] = score
    return changed


BAD = {
    "no JSON": (b'{"', "invalid_receipt"),
    "another document": (b'{"a": 1}', "invalid_receipt"),
    "score": (dump(with_score(SECOND, SECOND["candidates"][0]["score"] + 1e-12)), "replay_mismatch"),
    "later version": (dump(SECOND | {"min_score_skipped": True}), "later_version_claim"),
    "checksum": (stored_line(SECOND, "0" * 64), "checksum_mismatch"),
    "no record": (dump({"feedback_id": "x"}), "invalid_label_record"),
    "unknown request": (make_record(OLD, {0: True}), "invalid_label_record"),
    "other bytes": (make_record(FIRST, {0: True}, receipt_checksum="0" * 64), "invalid_label_record"),
    "unknown node": (make_record(FIRST, {7: True}), "invalid_label_record"),
    "another user": (make_record(FIRST, {0: True}, user_id="other"), "invalid_label_record"),
    "not in context": (make_record(FIRST, {0: False}, surface="context"), "invalid_label_record"),
}


@pytest.mark.parametrize(("line", "code"), BAD.values(), ids=BAD)
def test_a_bad_line_is_named_and_nothing_of_its_file_is_written(me, line, code) -> None:
    refused = post(me, dump(FIRST), b"", line, LABELS)
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["line"]) == (400, code, 3)
    assert "question" not in refused.content.decode()
    assert rows(me) == (0, 0)


def test_a_late_line_undoes_the_batches_before(me, monkeypatch) -> None:
    monkeypatch.setattr("apps.retrieval.services.imports.BATCH", 2)
    lines = [dump(make_receipt(FEATURES, request=number)) for number in range(1, 6)]
    with pytest.raises(ImportRefused):
        import_all(me, *lines, b"[]")
    assert rows(me) == (0, 0)
    labels = [
        make_record(make_receipt(FEATURES, request=number), {0: True}, feedback=number)
        for number in range(1, 6)
    ]
    counts = import_all(me, *labels, *lines)
    assert (counts.receipts, counts.labels) == (5, 5)
    with principal_session(me):
        assert [str(UUID(int=number)) for number in range(1, 6)] == [
            receipt.document.request_id for receipt in prme_receipts()
        ]
        assert [record.feedback_id for record in prme_label_records()] == [
            str(UUID(int=number)) for number in range(1, 6)
        ]


def test_lines_come_as_json_too(me) -> None:
    body = {"lines": [stored_line(FIRST).decode(), LABELS.decode()]}
    answer = client(me).post("/v1/receipts/import", body, content_type="application/json").json()
    assert answer["receipts"][0]["checksum"] == hashlib.sha256(dump(FIRST)).hexdigest()
    assert answer["labels"] == 1
    for empty in ({"lines": []}, {}, []):
        refused = client(me).post("/v1/receipts/import", empty, content_type="application/json")
        assert refused.json()["code"] == "invalid_request"
    assert post(me).json()["receipts"] == []


def test_a_replay_says_score_by_score_that_it_holds(me) -> None:
    first, old = (one["receipt_id"] for one in post(me, dump(FIRST), dump(OLD)).json()["receipts"])
    verdict = client(me).get(f"/v1/receipts/{first}/replay").json()
    assert (verdict["verified"], verdict["contract"], verdict["candidates"]) == (True, "prme-12", 2)
    assert [one["node_id"] for one in verdict["scores"]] == [node_id(0), node_id(1)]
    assert all(one["recorded"] == one["replayed"] for one in verdict["scores"])
    refused = client(me).get(f"/v1/receipts/{old}/replay")
    assert (refused.status_code, refused.json()["code"]) == (409, "replay_unavailable")


def test_the_list_of_imported_receipts_is_a_list_of_its_own(me) -> None:
    import_all(me, dump(FIRST), dump(SECOND))
    import_all(me, dump(OLD))
    web = client(me)
    assert web.get("/v1/receipts").json()["receipts"] == []
    page = web.get("/v1/receipts?form=prme&limit=2").json()
    rest = web.get(f"/v1/receipts?form=prme&limit=2&cursor={page['next_cursor']}").json()
    found = [*page["receipts"], *rest["receipts"]]
    assert found[0]["contract"] == "prme-1"
    assert {row["contract"] for row in found} == {"prme-1", "prme-2", "prme-12"}
    assert rest["next_cursor"] is None
    # Differing in case and spaces alone, two queries are one.
    assert len({row["query"]["identity"] for row in found}) == 1
    one = web.get("/v1/receipts", {"form": "prme", "request_id": FIRST["request_id"]}).json()["receipts"]
    assert [(row["request_id"], row["candidates"], row["scopes"]) for row in one] == [
        (FIRST["request_id"], 2, ["project"])
    ]
    for query, number in (("formula=none", 1), ("scope=project", 3), ("scope=personal", 0)):
        assert len(web.get(f"/v1/receipts?form=prme&{query}").json()["receipts"]) == number
    assert web.get("/v1/receipts?form=prme&profile=none").json()["pointer"] == "/profile"
    assert web.get(f"/v1/receipts?request_id={FIRST['request_id']}").json()["pointer"] == "/request_id"


def test_the_words_stay_where_they_came_and_the_list_costs_one_query(me, django_assert_num_queries) -> None:
    import_all(me, *(dump(make_receipt(FEATURES, request=number)) for number in range(1, 20)))
    with principal_session(me):
        with django_assert_num_queries(1):
            page = imported_page(ReceiptsQuery(form="prme", limit=10))
    assert "question" not in json.dumps(page)


def test_another_principal_has_none_and_may_import_the_same(world, me) -> None:
    receipt_id = post(me, dump(FIRST)).json()["receipts"][0]["receipt_id"]
    other = make_principal(world.workspace)
    for tail in ("", "/replay"):
        refused = client(other).get(f"/v1/receipts/{receipt_id}{tail}")
        assert (refused.status_code, refused.json()["code"]) == (404, "unknown_receipt")
    assert import_all(other, spaced(FIRST)).receipts == 1
    assert rows(me) == rows(other) == (1, 0)


def test_staff_see_by_their_grant_and_never_the_text(world, me) -> None:
    import_all(me, dump(FIRST), LABELS)
    with staff_session(make_staff(world.workspace, "curate")):
        assert not PrmeReceipt.objects.exists()
    with staff_session(make_staff(world.workspace, "view_traces")):
        assert PrmeReceipt.objects.defer("document").get().candidate_count == 2
        assert PrmeLabelRecord.objects.defer("document").get().label_count == 2
    with (
        pytest.raises(DatabaseError, match="permission denied"),
        staff_session(make_staff(world.workspace, "view_traces")),
    ):
        PrmeReceipt.objects.values_list("document").first()


def test_nobody_changes_an_imported_receipt(me) -> None:
    import_all(me, dump(FIRST), LABELS)
    for table in ("retrieval_prme_receipt", "retrieval_prme_label"):
        for change in (f"UPDATE {table} SET document = ''", f"DELETE FROM {table}"):
            with (
                pytest.raises(DatabaseError, match="permission denied"),
                principal_session(me),
                connection.cursor() as cursor,
            ):
                cursor.execute(change)


def test_a_spoiled_row_is_refused(me, monkeypatch) -> None:
    def spoiled(running, receipt):
        row = plain(running, receipt)
        row.document = row.document.replace("a question", "b question")
        return row

    plain = imports._row
    monkeypatch.setattr(imports, "_row", spoiled)
    receipt_id = post(me, dump(FIRST)).json()["receipts"][0]["receipt_id"]
    with principal_session(me), pytest.raises(CorruptReceipt):
        prme_receipt(UUID(receipt_id))
    for tail in ("", "/replay"):
        assert client(me).get(f"/v1/receipts/{receipt_id}{tail}").json()["code"] == "corrupt_receipt"


@pytest.mark.django_db(transaction=True)
def test_it_is_hidden_at_its_time_and_goes_with_its_labels(me, owner_connection) -> None:
    import_all(me, dump(FIRST), LABELS)
    import_all(me, dump(SECOND))
    owner_connection.execute(
        "UPDATE retrieval_prme_receipt SET expires_at = now() WHERE request_id = %s", [FIRST["request_id"]]
    )
    assert rows(me) == (1, 0)
    assert post(me, dump(FIRST)).json()["code"] == "receipt_conflict"
    assert expiry.status(retention.IMPORTED).values["expired_receipts"] == 1
    assert expiry.drain(retention.IMPORTED).counts == {"receipts": 1}
    assert owner_connection.execute("SELECT count(*) FROM retrieval_prme_label").fetchone() == (0,)
    assert import_all(me, dump(FIRST)).receipts == 1


@pytest.mark.django_db(transaction=True)
def test_it_is_kept_as_long_as_the_gate_policy_in_effect_says(world, me, owner_connection) -> None:
    def days():
        with principal_session(me):
            return {
                row.request_id: (row.expires_at - row.imported_at).days for row in PrmeReceipt.objects.all()
            }

    first, second = (UUID(document["request_id"]) for document in (FIRST, SECOND))
    import_all(me, dump(FIRST))
    assert days() == {first: 730}
    publish_gate(world, retention_days=30)
    import_all(me, dump(SECOND))
    assert days() == {first: 730, second: 30}
    assert tasks.expire_imported.function() == {"receipts": 0}
    assert days() == {first: 30, second: 30}
    owner_connection.execute(
        "UPDATE retrieval_prme_receipt SET imported_at = imported_at - interval '40 days', expires_at = "
        "expires_at - interval '40 days' WHERE request_id = %s",
        [first],
    )
    publish_gate(world, retention_days=3650)
    assert days() == {second: 30}
    # What was hidden is not shown again, and goes.
    assert tasks.expire_imported.function() == {"receipts": 1}
    assert days() == {second: 3650}


def publish_gate(world, **changes) -> None:
    with staff_session(make_staff(world.workspace, "manage_profiles", "review_retention", "view_traces")):
        known = policies.followed(world.workspace.pk, "gate")
        policies.publish_policy(
            workspace_id=world.workspace.pk,
            kind="gate",
            document=known.document | changes,
            if_match=known.hash,
            reason="another term from now on",
        )


@pytest.mark.django_db(transaction=True)
def test_erasing_the_principal_leaves_nothing_of_it(
    world, me, owner_connection, monkeypatch, tmp_path
) -> None:
    sent: list[UUID] = []
    monkeypatch.setattr(erase, "delay", sent.append)
    other = make_principal(world.workspace)
    for principal in (me, other):
        import_all(principal, dump(FIRST), LABELS)
    with override_settings(ERASURE_FILE=tmp_path / "erasures.jsonl"):
        answer = client(me, "erase").post("/v1/me/erasure", {"confirm": "erase"}, "application/json")
        assert answer.status_code == 202
        runs.run(sent[0])
    for table in ("retrieval_prme_receipt", "retrieval_prme_label"):
        assert owner_connection.execute(f"SELECT principal_id FROM {table}").fetchall() == [
            (other.principal_id,)
        ]


@pytest.mark.django_db(transaction=True)
def test_a_hold_stops_the_deletion_and_not_the_hiding(world, me, owner_connection) -> None:
    receipt_id = UUID(post(me, dump(FIRST), LABELS).json()["receipts"][0]["receipt_id"])
    placer, other = (make_staff(world.workspace, "review_retention", "view_traces") for _ in range(2))
    with staff_session(placer):
        hold = holds.place(
            workspace_id=world.workspace.pk,
            reference="case 1",
            reason="asked for by the court",
            items=[("retrieval.prmereceipt", receipt_id)],
        )
    owner_connection.execute("UPDATE retrieval_prme_receipt SET expires_at = now()")
    assert expiry.drain(retention.IMPORTED).counts == {"receipts": 0}
    with staff_session(placer):
        assert PrmeReceipt.objects.defer("document").count() == 1
    assert rows(me) == (0, 0)
    with staff_session(other):
        holds.release(hold_id=hold.pk, reason="the case is closed")
    assert expiry.drain(retention.IMPORTED).counts == {"receipts": 1}


@pytest.mark.parametrize("name", ["weighted-v2", "weighted-v12", "served", "holdout"])
def test_what_prme_wrote_verifies_replays_and_keeps_its_checksums(me, name, tmp_path) -> None:
    path = judged_data("prme") / name / "receipts.jsonl.gz"
    written = {receipt.document.request_id: receipt for receipt in iter_receipts(path)}
    out = StringIO()
    workspace, subject = names_of(me)
    call_command("import_prme", str(path), workspace=workspace, principal=subject, stdout=out)
    assert f"{len(written)} receipts" in out.getvalue()
    with principal_session(me):
        stored = list(prme_receipts())
    assert [one.document.request_id for one in stored] == sorted(written)
    for receipt in stored:
        assert receipt.raw == written[receipt.document.request_id].raw
        assert receipt.checksum == written[receipt.document.request_id].checksum
    call_command("import_prme", str(path), workspace=workspace, principal=subject, stdout=out)
    assert f"{len(written)} and 0 known" in out.getvalue()


def names_of(principal):
    """Slug of the workspace and subject of a principal, as an operator knows them."""
    with staff_session(make_superuser()):
        found = Principal.objects.select_related("workspace").defer("hash_key").get(pk=principal.principal_id)
        return found.workspace.slug, found.subject


def test_the_command_names_file_and_line_and_stops(me, tmp_path) -> None:
    good, bad = tmp_path / "good.jsonl.gz", tmp_path / "bad.jsonl"
    good.write_bytes(gzip.compress(dump(FIRST) + b"\n" + LABELS + b"\n"))
    bad.write_bytes(dump(SECOND) + b"\n[]\n")
    workspace, subject = names_of(me)
    with pytest.raises(CommandError, match=r"bad\.jsonl: invalid_receipt: line 2") as refused:
        call_command(
            "import_prme", str(good), str(bad), workspace=workspace, principal=subject, stdout=StringIO()
        )
    assert refused.value.returncode == 2
    assert rows(me) == (1, 1)
    for files, options in (
        ([tmp_path / "none.jsonl"], {"workspace": workspace, "principal": subject}),
        ([good], {"workspace": "nowhere", "principal": subject}),
    ):
        with pytest.raises(CommandError):
            call_command("import_prme", *map(str, files), **options, stdout=StringIO())


@pytest.mark.parametrize(
    "given", [{"workspace": "nowhere"}, {"principal": "a\0b"}], ids=["workspace", "subject"]
)
def test_the_command_refuses_whom_it_does_not_know_as_bad_input(me, tmp_path, given) -> None:
    good = tmp_path / "good.jsonl"
    good.write_bytes(dump(FIRST) + b"\n")
    workspace, subject = names_of(me)
    with pytest.raises(CommandError, match=r"There (is|can be) no such") as refused:
        call_command("import_prme", str(good), **({"workspace": workspace, "principal": subject} | given))
    assert refused.value.returncode == 2
    assert rows(me) == (0, 0)


def test_the_examples_of_the_documentation_import_and_replay(me) -> None:
    folder = ROOT / "docs" / "examples"
    with principal_session(me):
        receipts = import_lines(lines=read_lines(folder / "prme-receipts.jsonl"))
        labels = import_lines(lines=read_lines(folder / "prme-labels.jsonl"))
    assert (receipts.receipts, labels.labels) == (2, 2)
    raw = (folder / "prme-receipts.jsonl").read_bytes()
    again = client(me).post("/v1/receipts/import", raw, content_type="application/x-ndjson").json()
    assert (again["known_receipts"], again["receipts"][0]["stored"]) == (2, False)
    verdict = client(me).get(f"/v1/receipts/{again['receipts'][0]['receipt_id']}/replay").json()
    assert (verdict["verified"], verdict["contract"], verdict["candidates"]) == (True, "prme-12", 3)
