"""How a run ends, how long evidence is kept, and what goes with it."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

from apps.accounts.services import enter_principal
from apps.core.db.sessions import principal_session
from apps.learning import retention, tasks
from apps.learning.models import Evaluation, EvaluationResult, Holdout, HoldoutResult, JudgedQuery, QuerySet
from apps.learning.selectors.evaluations import evaluation_of
from apps.learning.selectors.holdouts import holdout_of
from apps.learning.services import arms, runs
from apps.learning.services import evaluations as services
from apps.learning.services.evaluations import recompute_evaluation, run_evaluation
from apps.learning.services.holdouts import cancel_holdout, recompute_holdout
from apps.operations import expiry
from apps.operations.erasure import runs as erasure_runs
from apps.operations.erasure import services as erasures
from apps.retrieval.models import Receipt, ReceiptKeeper
from apps.traces import tasks as trace_tasks
from apps.traces.models import Trace
from tests.support import collection
from tests.support.factories import make_world
from tests.support.statements import calls_for_holds

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]

FEW = {"min_training_queries": 2, "min_validation_queries": 2}


@pytest.fixture
def me():
    return make_world().principal


@pytest.fixture
def made(me):
    return collection.judged_collection(me, training=3, validation=3, unseen=3)


def count(me, model, **where) -> int:
    with principal_session(me):
        return model.objects.filter(**where).count()


def evaluation(me, evaluation_id):
    with principal_session(me):
        return evaluation_of(evaluation_id)


def age(owner, table: str, column: str, days: int) -> None:
    owner.execute(f"UPDATE {table} SET {column} = {column} - make_interval(days => {days})")


def drained() -> dict[str, int]:
    return expiry.drain(retention.LEARNING).counts


def asked(me) -> UUID:
    """An evaluation that waits for a worker."""
    with principal_session(me):
        return services.start_evaluation(idempotency_key="k", request=services.EvaluationRequest())


def test_evidence_outlives_the_traces_that_it_stands_on(me, made, owner_connection) -> None:
    evaluation_id = collection.evaluate(me, config=FEW)
    holdout_id = collection.hold_out(me, evaluation_id, collection.query_set(made))
    age(owner_connection, "traces_trace", "expires_at", 100)
    trace_tasks.expire.function()
    assert count(me, Trace) == 0
    with principal_session(me):
        assert recompute_evaluation(evaluation_of(evaluation_id)).coverage["requests_with_pairs"] == 6
        assert recompute_holdout(holdout_of(holdout_id)).coverage["trials"] == 3


def test_past_its_days_evidence_goes_with_the_receipts_that_only_it_kept(me, made, owner_connection) -> None:
    evaluation_id = collection.evaluate(me, config=FEW)
    collection.hold_out(me, evaluation_id, collection.query_set(made))
    age(owner_connection, "learning_query_set", "created_at", 731)
    age(owner_connection, "learning_evaluation", "requested_at", 731)
    assert drained()["query_sets"] == 0  # the holdout stands on both
    assert count(me, Evaluation) == 1
    age(owner_connection, "learning_holdout", "requested_at", 731)
    counts = drained()
    assert (counts["holdouts"], counts["evaluations"], counts["query_sets"]) == (1, 1, 1)
    for model in (Evaluation, Holdout, HoldoutResult, QuerySet, JudgedQuery):
        assert count(me, model) == 0
    assert count(me, Receipt, trace=None) == 0
    assert count(me, ReceiptKeeper, kind__startswith="learning") == 0
    assert count(me, Receipt) == 6
    assert "expired_evaluations" not in expiry.status(retention.LEARNING).reasons


def test_a_key_goes_with_what_it_made(me, owner_connection) -> None:
    first = asked(me)
    age(owner_connection, "learning_evaluation", "requested_at", 731)
    tasks.prune.function()
    assert asked(me) != first


def test_overdue_evidence_is_an_alarm(me, owner_connection) -> None:
    asked(me)
    age(owner_connection, "learning_evaluation", "requested_at", 760)
    status = expiry.status(retention.LEARNING)
    assert "expired_evaluations" in status.reasons
    assert status.oldest_overdue_seconds > timedelta(days=29).total_seconds()


def test_what_is_not_due_costs_no_look_at_holds(me, made, owner_connection, admin_connection) -> None:
    """The status is read again and again, whatever number of evaluations there is."""
    collection.hold_out(me, collection.evaluate(me, config=FEW), collection.query_set(made))
    rows = {"learning_evaluation": "requested_at", "learning_holdout": "requested_at"}
    rows["learning_query_set"] = "created_at"
    for days, calls in ((0, 0), (731, 3)):
        for table, column in rows.items():
            age(owner_connection, table, column, days)
        assert calls_for_holds(admin_connection, "learning_status") == calls


def test_what_nobody_works_on_is_sent_again(me, owner_connection, monkeypatch) -> None:
    evaluation_id, sent = asked(me), []
    monkeypatch.setattr(tasks.evaluate, "delay", lambda *ids: sent.append(ids))
    assert tasks.resume.function() == {"sent": 0}
    age(owner_connection, "learning_evaluation", "requested_at", 1)
    assert tasks.resume.function() == {"sent": 1}
    assert sent == [(me.principal_id, evaluation_id)]


def test_a_run_that_kills_its_worker_again_and_again_ends_as_lost(me) -> None:
    evaluation_id = asked(me)
    with principal_session(me):
        Evaluation.objects.update(attempts=runs.MOST_ATTEMPTS, status="running")
    assert run_evaluation(principal_id=me.principal_id, evaluation_id=evaluation_id) == {}
    found = evaluation(me, evaluation_id)
    assert (found.status, found.failure_code) == ("failed", "lost")


def test_what_was_stopped_while_its_worker_was_dead_is_taken_up_to_be_ended(me) -> None:
    evaluation_id = asked(me)
    with principal_session(me):
        Evaluation.objects.update(attempts=1, status="running")
        services.cancel_evaluation(evaluation_id=evaluation_id)
    assert evaluation(me, evaluation_id).status == "running"
    assert run_evaluation(principal_id=me.principal_id, evaluation_id=evaluation_id) == {}
    found = evaluation(me, evaluation_id)
    assert (found.status, found.failure_code, found.attempts) == ("cancelled", "", 1)


def test_a_fault_of_ours_ends_the_run_and_fails_the_job(me, monkeypatch) -> None:
    evaluation_id = asked(me)
    monkeypatch.setattr(services, "native_inputs", lambda cut: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_evaluation(principal_id=me.principal_id, evaluation_id=evaluation_id)
    found = evaluation(me, evaluation_id)
    assert (found.status, found.failure_code) == ("failed", "internal_error")


def test_cancelling_stops_a_running_holdout_which_leaves_nothing(me, made, monkeypatch) -> None:
    evaluation_id, set_id = collection.evaluate(me, config=FEW), collection.query_set(made)
    answered = arms._answered
    monkeypatch.setattr("apps.learning.services.watch.INTERVAL_S", 0.0)
    asked_to_stop: list[UUID] = []

    def and_stop(asking, *rest):
        if not asked_to_stop:
            asked_to_stop.append(asking.holdout.pk)
            watch = runs.Watch(Holdout, me.principal_id, asking.holdout.pk)
            watch.apart(lambda: cancel_holdout(holdout_id=asking.holdout.pk))
        return answered(asking, *rest)

    monkeypatch.setattr(arms, "_answered", and_stop)
    holdout_id = collection.hold_out(me, evaluation_id, set_id)
    with principal_session(me):
        found = holdout_of(holdout_id)
    assert (found.status, found.phase, found.finished_at is not None) == ("cancelled", "", True)
    assert (count(me, HoldoutResult), count(me, Receipt, trace=None)) == (0, 0)


def test_cancelling_stops_an_evaluation_in_the_midst_of_its_fit(me, made, monkeypatch) -> None:
    monkeypatch.setattr("apps.learning.services.watch.INTERVAL_S", 0.0)
    steps, step = [], runs.Watch.step

    def and_stop(watch, count=1):
        steps.append(watch)
        if len(steps) == 3:
            watch.apart(lambda: services.cancel_evaluation(evaluation_id=watch._run_id))
        step(watch, count)

    monkeypatch.setattr(runs.Watch, "step", and_stop)
    found = evaluation(me, collection.evaluate(me, config=FEW))
    assert len(steps) == 3
    assert (found.status, found.phase, found.finished_at is not None) == ("cancelled", "", True)
    assert (count(me, EvaluationResult), count(me, ReceiptKeeper, kind=services.KEEPER)) == (0, 0)


def test_an_evaluation_tells_its_phases_and_steps_in_order(me, made, monkeypatch) -> None:
    monkeypatch.setattr("apps.learning.services.watch.INTERVAL_S", 0.0)
    told, write = [], runs.Watch._write

    def and_note(watch):
        found = write(watch)
        told.append(Evaluation.objects.values_list("phase", "done").get())
        return found

    monkeypatch.setattr(runs.Watch, "_write", and_note)
    collection.evaluate(me, config=FEW)
    assert list(dict.fromkeys(phase for phase, _ in told)) == ["loading", "fitting", "storing"]
    steps = [done for phase, done in told if phase == "fitting"]
    assert steps == list(range(len(steps)))
    assert len(steps) > 20


class Killed(BaseException):
    """What nothing of a run may catch, as a worker's end."""


@pytest.mark.parametrize("phase", ["loading", "fitting", "storing"])
def test_what_a_killed_worker_left_is_taken_up_again_and_ends_well(
    me, made, owner_connection, monkeypatch, phase
) -> None:
    with principal_session(me):
        request = services.EvaluationRequest(config=services.LearningConfig(**FEW))
        evaluation_id = services.start_evaluation(idempotency_key="k", request=request)

    def killed(*args, **more):
        raise Killed

    with monkeypatch.context() as patched:
        at = {"loading": "native_inputs", "fitting": "evaluate", "storing": "_store_queries"}[phase]
        patched.setattr(services, at, killed)
        with pytest.raises(Killed):
            run_evaluation(principal_id=me.principal_id, evaluation_id=evaluation_id)
    left = evaluation(me, evaluation_id)
    assert (left.status, left.phase, left.attempts) == ("running", phase, 1)
    assert count(me, EvaluationResult) == 0
    sent = []
    monkeypatch.setattr(tasks.evaluate, "delay", lambda *ids: sent.append(ids))
    age(owner_connection, "learning_evaluation", "requested_at", 1)
    age(owner_connection, "learning_evaluation", "started_at", 1)
    assert tasks.resume.function() == {"sent": 1}
    # The cut is that of the request; what was aged by a day had no label yet.
    age(owner_connection, "learning_evaluation", "requested_at", -1)
    assert tasks.evaluate.function(*sent[0]) == {"succeeded": 1}
    found = evaluation(me, evaluation_id)
    assert (found.status, found.attempts, found.result.decision) == (
        "succeeded",
        2,
        "improved_on_observed_candidates",
    )


def test_progress_is_seen_while_the_snapshot_is_open(me, made, monkeypatch) -> None:
    evaluation_id, set_id = collection.evaluate(me, config=FEW), collection.query_set(made)
    monkeypatch.setattr("apps.learning.services.watch.INTERVAL_S", 0.0)
    answered, seen = arms._answered, []

    def and_look(asking, *rest):
        watch = runs.Watch(Holdout, me.principal_id, asking.holdout.pk)
        seen.append(watch.apart(lambda: Holdout.objects.values_list("phase", "done", "total").get()))
        return answered(asking, *rest)

    monkeypatch.setattr(arms, "_answered", and_look)
    collection.hold_out(me, evaluation_id, set_id)
    assert seen[::2] == [("retrieving", done, 3) for done in range(3)]


def test_erasing_a_principal_leaves_no_evidence_and_proves_it(me, made, tmp_path, owner_connection) -> None:
    evaluation_id = collection.evaluate(me, config=FEW)
    collection.hold_out(me, evaluation_id, collection.query_set(made))
    with override_settings(ERASURE_FILE=tmp_path / "erasures.jsonl"):
        with principal_session(me):
            certificate = erasures.begin()
        assert erasure_runs.run(certificate).status == "complete"
    for table in ("evaluation", "evaluation_result", "holdout", "holdout_pair", "query_set", "judged_query"):
        assert owner_connection.execute(f"SELECT count(*) FROM learning_{table}").fetchone() == (0,)
    assert owner_connection.execute("SELECT count(*) FROM retrieval_receipt").fetchone() == (0,)


# Files.


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "first", "metadata": {"intent": "how"}}\n'
        '{"_id": "2", "text": "second"}\n'
        '{"_id": "3", "text": "not judged in this split"}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tA\t3\n1\tB\t-1\n2\tB\t1\n")
    return tmp_path


def load(folder, world, **more) -> None:
    given = {"workspace": world.workspace.slug, "principal": "reader", "collection": "c"} | more
    call_command("import_query_set", str(folder), **given)


def test_a_query_set_is_made_from_files(folder, capsys) -> None:
    world = make_world()
    load(folder, world, slice_by="intent")
    assert "2 queries, 3 judgments" in capsys.readouterr().out
    reader = enter_principal(workspace=world.workspace.pk, subject="token:reader")
    with principal_session(reader):
        first = JudgedQuery.objects.get(name="1")
        assert (first.slice, first.repos, first.identities, first.grades) == (
            "how",
            ["conn:c", "conn:c"],
            ['"A"', '"B"'],
            [3, 0],
        )
        assert QuerySet.objects.get().source == "files"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("qrels/test.tsv", "1\tA\t9\n", "line 1 of test.tsv"),
        ("qrels/test.tsv", "1\tA\n", "line 1 of test.tsv"),
        ("queries.jsonl", '{"_id": "1"}\n', "line 1 of queries.jsonl"),
        ("qrels/test.tsv", "1\tA\t1\n1\t\xff\t1\n", "line 2 of test.tsv"),
        ("qrels/test.tsv", f"1\tA\t1\n\n1\t{'A' * 140_000}\t1\n", "line 3 of test.tsv"),
        (
            "queries.jsonl",
            '{"_id": "1", "text": "first"}\n{"_id": "2", "text": "\xff"}\n',
            "line 2 of queries",
        ),
        ("queries.jsonl", '{"_id": "1", "text": "a\\u0000b"}\n', "line 1 of queries"),
        ("queries.jsonl", "[" * 100_000 + "\n", "line 1 of queries"),
        ("queries.jsonl", "", "no set of 1 to 2,000 queries"),
    ],
    ids=[
        "grade",
        "columns",
        "no-text",
        "judgments-in-latin-1",
        "long-field",
        "queries-in-latin-1",
        "nul",
        "nested",
        "empty",
    ],
)
def test_files_that_cannot_be_read_name_the_line_and_not_its_text(folder, name, text, says) -> None:
    (folder / name).write_text(text, encoding="latin-1")
    refusal(folder, make_world(), says)


def refusal(folder, world, says, **more) -> None:
    with pytest.raises(CommandError, match=says) as refused:
        load(folder, world, **more)
    assert refused.value.returncode == 2


def test_a_folder_without_the_files_is_told(tmp_path) -> None:
    refusal(tmp_path, make_world(), "holds no queries")


def test_a_set_that_is_refused_enters_nobody(folder, admin_connection) -> None:
    entered = "SELECT count(*) FROM accounts_principal WHERE subject = 'token:reader'"
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "first"}\n' * 2)
    refusal(folder, make_world(), "/queries/1/id")
    assert admin_connection.execute(entered).fetchone() == (0,)


def test_a_set_that_cannot_be_made_is_bad_input_too(folder) -> None:
    world = make_world()
    refusal(folder, world, "no such workspace", workspace="nowhere")
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "first"}\n' * 2)
    refusal(folder, world, "/queries/1/id")
