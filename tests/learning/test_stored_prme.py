"""An evaluation of imported receipts is that of their files, byte for byte."""

import pytest

from apps.core.db.sessions import principal_session
from apps.learning.evaluate import evaluate
from apps.learning.exceptions import LearningInputError, NotReproducible
from apps.learning.prme_holdout import HoldoutArguments
from apps.learning.schemas import LearningConfig
from apps.learning.selectors.evaluations import evaluation_of, receipts_gone
from apps.learning.selectors.holdouts import holdout_of
from apps.learning.services.evaluations import recompute_evaluation
from apps.learning.services.holdouts import recompute_holdout, run_holdout
from apps.learning.stored_prme import stored_prme_inputs
from apps.retrieval.prme.reading import read_lines
from apps.retrieval.services import import_lines, imports
from tests.learning.test_reference import arguments, evaluation, holdout
from tests.support import collection, judged_data
from tests.support.factories import make_principal, make_world
from tests.support.prme import dump, make_receipt

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


def test_a_report_of_imported_files_is_that_of_the_files(world, me) -> None:
    folder = judged_data("prme") / "weighted-v12"
    with principal_session(me):
        for name in ("receipts", "records"):
            import_lines(lines=read_lines(folder / f"{name}.jsonl.gz"))
    given = arguments("weighted-v12")
    with principal_session(me):
        inputs = stored_prme_inputs(query_groups=given["query_groups"])
    report = evaluate(
        inputs, scopes=("project",), config=LearningConfig.model_validate(given.get("config", {}))
    )
    assert report.model_dump_json() == evaluation("weighted-v12").model_dump_json()
    with principal_session(make_principal(world.workspace)), pytest.raises(LearningInputError):
        stored_prme_inputs()


def test_a_receipt_that_does_not_hold_fails_the_evaluation(me, monkeypatch) -> None:
    plain = imports._row

    def spoiled(running, receipt):
        row = plain(running, receipt)
        row.checksum = "0" * 64
        return row

    monkeypatch.setattr(imports, "_row", spoiled)
    features = ((0.9, 0.8, 0.4, 0.5, 0.6, 0.7), (0.6, 0.5, 0.4, 0.5, 0.6, 0.7))
    with principal_session(me):
        import_lines(lines=[(1, dump(make_receipt(features)))])
        with pytest.raises(NotReproducible):
            stored_prme_inputs()


@pytest.mark.usefixtures("quiet")
def test_it_is_asked_for_like_any_other_and_explores(me) -> None:
    folder = judged_data("prme") / "weighted-v12"
    with principal_session(me):
        for name in ("receipts", "records"):
            import_lines(lines=read_lines(folder / f"{name}.jsonl.gz"))
    given = arguments("weighted-v12")
    asked = {"source": "imported", "scopes": ["project"], "query_groups": given["query_groups"]}
    evaluation_id = collection.evaluate(me, **asked, config=given.get("config", {}))
    with principal_session(me):
        found = evaluation_of(evaluation_id)
        assert (found.status, found.failure_code, found.exploratory) == ("succeeded", "", True)
        report = recompute_evaluation(found)
        assert receipts_gone(found) == 0
    assert report.model_dump_json() == evaluation("weighted-v12").model_dump_json()


@pytest.mark.usefixtures("quiet")
def test_imported_pairs_give_the_holdout_of_their_files(me) -> None:
    """The proposal is another one than the files name; all that is computed from pairs is the same."""
    folder = judged_data("prme") / "holdout"
    given = HoldoutArguments.model_validate_json((folder / "inputs.json").read_bytes())
    with principal_session(me):
        import_lines(lines=read_lines(folder / "receipts.jsonl.gz"))
    holdout_id = collection.stored_holdout(
        me,
        collection.evaluate(me),
        None,
        trials=[trial.model_dump(mode="json") for trial in given.trials],
        memory_artifact_sha256=given.memory_artifact_sha256,
        baseline_multipliers=given.baseline_multipliers.values(),
        candidate_multipliers=given.candidate_multipliers.values(),
        config=given.config.model_dump(mode="json"),
        scopes=None if given.scopes is None else sorted(given.scopes),
        exploratory=True,
    )
    assert run_holdout(principal_id=me.principal_id, holdout_id=holdout_id) == {"succeeded": 1}
    with principal_session(me):
        found = holdout_of(holdout_id)
        assert (found.status, found.failure_code, found.exploratory) == ("succeeded", "", True)
        report = recompute_holdout(found)
    theirs = holdout()
    assert (report.decision, report.ndcg_gain) == (theirs.decision, theirs.ndcg_gain)
    assert report.ndcg_gain_interval == theirs.ndcg_gain_interval
    assert report.receipt_checksums == theirs.receipt_checksums
