"""Every stored receipt replayed by one command, whoever owns it, and what differs first named."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from apps.accounts import services as accounts
from apps.core.db.sessions import principal_session, staff_session
from apps.retrieval import all_receipts
from apps.retrieval.models import Receipt
from apps.retrieval.services import import_lines
from apps.retrieval.verdicts import native_verdict, prme_verdict
from tests.retrieval.test_prme_import import FIRST, OLD, names_of
from tests.retrieval.test_receipts import TEXTS
from tests.support import memory
from tests.support.factories import make_principal, make_world
from tests.support.prme import dump
from tests.support.receipts import keep

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    memory.store(world.principal, *TEXTS)
    for number in range(3):
        keep(world.principal, limit=number + 2)
    with principal_session(world.principal):
        import_lines(lines=[(1, dump(FIRST)), (2, dump(OLD))])
    return world.principal


def replay(*arguments):
    """Exit code, counts, and what was complained of."""
    out, err = StringIO(), StringIO()
    try:
        call_command("replay_receipts", *map(str, arguments), "--json", stdout=out, stderr=err)
    except SystemExit as left:
        return int(str(left.code)), json.loads(out.getvalue()), err.getvalue()
    return 0, json.loads(out.getvalue()), err.getvalue()


def test_all_receipts_of_all_principals_are_replayed(world, me, monkeypatch) -> None:
    monkeypatch.setattr(all_receipts, "BATCH", 2)
    monkeypatch.setattr(all_receipts, "OWNERS", 1)
    other = make_world().principal
    memory.store(other, *TEXTS)
    keep(other)
    make_principal(world.workspace)
    code, counts, err = replay()
    assert (code, err) == (0, "")
    assert counts == {"principals": 2, "receipts": 6, "replayed": 5, "not_replayable": 1, "drifted": 0}


def test_one_workspace_or_one_principal_is_named(world, me) -> None:
    stranger = make_world().principal
    second = make_principal(world.workspace)
    for principal in (stranger, second):
        memory.store(principal, *TEXTS)
        keep(principal)
    slug, subject = names_of(me)
    assert replay("--workspace", slug)[1]["receipts"] == 6
    assert replay("--workspace", slug, "--principal", subject)[1]["receipts"] == 5
    assert replay("--workspace", slug, "--principal", "nobody")[1]["principals"] == 0
    with staff_session(world.superuser):
        accounts.disable_principal(second.principal_id, reason="gone to another team")
    assert replay("--workspace", slug)[1]["receipts"] == 5


@pytest.mark.django_db(transaction=True)
def test_drift_is_counted_named_and_left_as_it_is(me, owner_connection) -> None:
    tampered = (
        "UPDATE retrieval_receipt SET document = changed, checksum = encode(sha256(changed::bytea), 'hex') "
        "FROM (SELECT id AS of, regexp_replace(document, '\"score\":0\\.(\\d)', '\"score\":0.0\\1') AS changed "
        "FROM retrieval_receipt ORDER BY id LIMIT 1) c WHERE of = id RETURNING id"
    )
    receipt_id = owner_connection.execute(tampered).fetchone()[0]
    owner_connection.execute(
        "UPDATE retrieval_prme_receipt SET checksum = repeat('0', 64) WHERE formula <> 'none'"
    )
    code, counts, err = replay()
    assert (code, counts["drifted"], counts["replayed"], counts["not_replayable"]) == (1, 2, 2, 1)
    assert f"{receipt_id}: The array scores differs from the document, first at value 1." in err
    with principal_session(me):
        assert Receipt.objects.get(pk=receipt_id).pk == receipt_id


def spoil(row, change):
    """The row with its document changed by `change`, arrays and checksum as somebody careful would."""
    import hashlib

    from apps.retrieval.receipts.arrays import arrays_of
    from apps.retrieval.receipts.writing import dumps

    document = json.loads(row.document)
    change(document)
    row.document = dumps(document).decode()
    row.checksum = hashlib.sha256(row.document.encode()).hexdigest()
    arrays = arrays_of(document)
    for name in arrays.__slots__:
        setattr(row, name, getattr(arrays, name))
    return row


def swap(document):
    rows = document["candidates"]
    rows[0], rows[1] = rows[1], rows[0]


def test_a_verdict_names_what_differs_first(me) -> None:
    with principal_session(me):
        ids = list(Receipt.objects.values_list("pk", flat=True))

    def row():
        with principal_session(me):
            return Receipt.objects.get(pk=ids[0])

    good = native_verdict(row())
    assert good.holds
    assert good.replayed
    assert [check.name for check in good.checks] == ["checksum", "document", "arrays", "replay"]
    nodes = json.loads(row().document)["candidates"]
    cases = {
        f"First that differs: candidate 2, node {nodes[1]['node_id']}, field score": lambda d: d[
            "candidates"
        ][1].update(score=d["candidates"][1]["score"] + 1e-12),
        f"First that differs: candidate 1, node {nodes[1]['node_id']}, its place": swap,
        "The applied weights do not follow": lambda d: d["weights"][0]["applied"].reverse(),
        "At /candidates/0/features/0:": lambda d: d["candidates"][0]["features"].__setitem__(0, 1.5),
        "At /receipt_id:": lambda d: d.update(receipt_id=str(ids[1])),
    }
    for says, change in cases.items():
        verdict = native_verdict(spoil(row(), change))
        assert not verdict.holds
        assert says in verdict.fault
        assert verdict.checks[0].holds
    other = row()
    other.document += " "
    assert native_verdict(other).fault == "The stored bytes are not those that the checksum was taken over."
    other = row()
    other.features[3] += 0.5
    assert native_verdict(other).fault.endswith("features differs from the document, first at value 4.")


def test_a_verdict_of_an_imported_one_does_too(me) -> None:
    from apps.retrieval.models import PrmeReceipt

    with principal_session(me):
        rows = {row.schema_version: row for row in PrmeReceipt.objects.all()}
    assert prme_verdict(rows[12]).holds
    assert [check.holds for check in prme_verdict(rows[1]).checks] == [True, True, None]
    row = rows[12]
    document = json.loads(row.document)
    document["candidates"][1]["score"] += 1e-12
    row.document = json.dumps(document)
    verdict = prme_verdict(row)
    assert [check.holds for check in verdict.checks] == [False, True, False]
    assert "/candidates/1/score" in verdict.checks[-1].says
    assert prme_verdict(rows[12]).document is not None
