"""On a memory with a known best weighting: the improvement is found, and confirmed on unseen queries."""

import pytest

from apps.core.db.sessions import principal_session
from apps.learning.selectors.evaluations import evaluation_of
from apps.learning.selectors.holdouts import holdout_of
from apps.learning.services.evaluations import recompute_evaluation
from apps.learning.services.holdouts import recompute_holdout
from apps.retrieval.models import Receipt
from tests.support import collection
from tests.support.factories import make_world

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.usefixtures("quiet")
def test_a_true_improvement_is_found_confirmed_and_computed_again() -> None:
    me = make_world().principal
    made = collection.judged_collection(me)
    evaluation_id = collection.evaluate(me)
    holdout_id = collection.hold_out(me, evaluation_id, collection.query_set(made))
    with principal_session(me):
        evaluation, holdout = evaluation_of(evaluation_id), holdout_of(holdout_id)
        assert (evaluation.status, evaluation.failure_code) == ("succeeded", "")
        assert evaluation.result.decision == "improved_on_observed_candidates"
        report = recompute_evaluation(evaluation)
        assert report.multipliers.recency > 2
        assert report.multipliers.lexical < 0.5
        assert (holdout.status, holdout.failure_code) == ("succeeded", "")
        assert holdout.result.decision == "improved_full_retrieval"
        assert not evaluation.exploratory
        assert not holdout.exploratory
        assert holdout.result.baseline_ndcg == pytest.approx(0.63093, abs=1e-4)
        assert holdout.result.candidate_ndcg == 1.0
        assert recompute_holdout(holdout).ndcg_gain == holdout.result.ndcg_gain
        assert Receipt.objects.filter(trace=None).count() == 2 * len(made.unseen)
