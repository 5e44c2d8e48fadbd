"""The gate is a stored policy like any other: on the page by itself, published by grant, kept by what ran under it."""

import pytest

from apps.core.db.sessions import principal_session, staff_session
from apps.core.policies import current_policy, kind_named, publish_policy, registered_kinds, stored_document
from apps.core.problems import Forbidden, InvalidRequest
from apps.learning.policy import KIND, gate_in_effect, gate_kind
from apps.learning.schemas import GatePolicy
from apps.learning.selectors.evaluations import evaluation_of
from tests.support import collection
from tests.support.factories import make_staff, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


@pytest.fixture
def world():
    return make_world()


def publish(world, *grants: str, **changes):
    user = make_staff(world.workspace, *grants)
    document = stored_document(GatePolicy()) | changes
    with staff_session(user):
        return publish_policy(
            workspace_id=world.workspace.pk,
            kind=KIND,
            document=document,
            if_match=current_policy(None, KIND).hash,
            reason="for the test",
        )


def test_the_default_that_the_migration_wrote_is_the_one_of_the_code(world) -> None:
    with principal_session(world.principal):
        assert gate_in_effect(world.workspace.pk).document == GatePolicy()
    assert gate_kind().model is kind_named(KIND).model
    assert KIND in {kind.name for kind in registered_kinds()}


def test_ranking_managers_publish_it_and_days_are_for_who_reviews_retention(world) -> None:
    evaluation = stored_document(GatePolicy())["evaluation"] | {"min_validation_queries": 30}
    with pytest.raises(Forbidden):
        publish(world, "curate", evaluation=evaluation)
    with pytest.raises(Forbidden):
        publish(world, "manage_profiles", retention_days=100)
    for days in (29, 3651):
        with pytest.raises(InvalidRequest):
            publish(world, "review_retention", retention_days=days)
    assert publish(world, "manage_profiles", evaluation=evaluation).version == 1


def test_what_is_asked_for_follows_the_gate_and_keeps_the_one_that_ruled(world) -> None:
    me = world.principal
    before = collection.evaluate(me)
    evaluation = stored_document(GatePolicy())["evaluation"] | {"min_validation_queries": 30}
    row = publish(world, "manage_profiles", evaluation=evaluation, annotators="majority")
    after = collection.evaluate(me)
    weaker = collection.evaluate(me, config={"min_validation_queries": 20})
    with principal_session(me):
        first, second, third = (evaluation_of(one) for one in (before, after, weaker))
        assert first.gate_policy_id == current_policy(None, KIND).pk
        assert (second.gate_policy_id, second.config["min_validation_queries"]) == (row.pk, 30)
        assert not second.exploratory
        assert third.weaker_settings == ["min_validation_queries"]
