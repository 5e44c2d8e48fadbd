"""Stored policies: appended in order, published by who may, ruling from their time."""

from datetime import timedelta

import pytest

from apps.core import clock
from apps.core.db import cursors
from apps.core.db.sessions import SessionError, principal_session, staff_session
from apps.core.models import AuditEntry, StoredPolicy
from apps.core.policies import (
    Kind,
    PolicyMissing,
    current_policy,
    differences,
    document_of,
    kind_named,
    policy_hash,
    policy_versions,
    preview_policy,
    register_kind,
    registered_kinds,
    stored_document,
)
from apps.core.problems import (
    Forbidden,
    InvalidRequest,
    NotFound,
    StaleVersion,
    StateConflict,
    VersionRequired,
)
from apps.core.schemas import StrictModel
from tests.support.factories import make_staff, make_superuser, make_world
from tests.support.policies import DEFAULT, NAME, Trial, publish, publish_within, trial_kind
from tests.support.statements import sent

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def kind(db, owner_connection):
    with trial_kind(owner_connection) as found:
        yield found


def test_without_a_version_of_its_own_a_workspace_follows_the_default():
    world = make_world()
    with principal_session(world.principal):
        row = current_policy(world.workspace.pk, NAME)
        assert (row.workspace_id, row.version) == (None, 1)
        assert document_of(row) == Trial()
        with pytest.raises(PolicyMissing):
            current_policy(world.workspace.pk, "no-such-kind")


def test_a_published_version_rules_at_once_and_older_ids_stay():
    world, other = make_world(), make_world()
    manager = make_staff(world.workspace, "manage_profiles")
    first = publish(manager, world.workspace, {"half_life_s": 60.0})
    second = publish(manager, world.workspace, {"half_life_s": 90.0})
    assert (first.version, second.version) == (1, 2)
    with principal_session(world.principal):
        row = current_policy(world.workspace.pk, NAME)
        assert row.pk == second.pk
        assert document_of(row) == Trial(half_life_s=90.0)
        assert StoredPolicy.objects.get(pk=first.pk).document["half_life_s"] == 60.0
    with principal_session(other.principal):
        assert current_policy(other.workspace.pk, NAME).version == 1
        assert not StoredPolicy.objects.filter(pk=first.pk).exists()
    with staff_session(manager):
        assert [row.pk for row in policy_versions(world.workspace.pk, NAME)] == [second.pk, first.pk]


def test_a_version_for_later_waits_and_then_rules(admin_connection):
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles")
    later = clock.now() + timedelta(hours=1)
    row = publish(manager, world.workspace, {"half_life_s": 60.0}, effective_from=later)
    with principal_session(world.principal):
        assert current_policy(world.workspace.pk, NAME).workspace_id is None
    assert row.effective_from == later
    with pytest.raises(StateConflict) as refused:
        publish(manager, world.workspace, {"half_life_s": 90.0})
    assert refused.value.document()["code"] == "policy_scheduled"
    publish(manager, world.workspace, {"half_life_s": 90.0}, effective_from=later + timedelta(microseconds=1))


def test_one_statement_and_one_index_answer_which_version_rules():
    world = make_world()
    with principal_session(world.principal):
        with sent() as statements:
            current_policy(world.workspace.pk, NAME)
        ((sql, values),) = statements
        cursors.run("SET LOCAL enable_seqscan = off")
        plan = "\n".join(line for (line,) in cursors.run("EXPLAIN " + sql, values, binary=False))
    assert plan.count("Index Scan using core_storedpolicy_") == 2
    assert "Seq Scan" not in plan


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"unknown": 1}, "/unknown"),
        ({"half_life_s": 0}, "/half_life_s"),
        ({"half_life_s": "60"}, "/half_life_s"),
        ({"half_life_s": float("nan")}, "/half_life_s"),
        ({"retention_days": {"trace": 91}}, "/retention_days/trace"),
        ({"retention_days": {"trace": 0.5}}, "/retention_days/trace"),
        ({"retention_days": {"more": 5}}, "/retention_days/more"),
    ],
)
def test_a_bad_document_is_refused_and_nothing_is_appended(admin_connection, document, where):
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles", "review_retention")
    with pytest.raises(InvalidRequest) as refused:
        publish(manager, world.workspace, document)
    assert refused.value.pointer == where
    with staff_session(manager):
        assert not policy_versions(world.workspace.pk, NAME).exists()


def refusals(world):
    manager = make_staff(world.workspace, "manage_profiles")
    reviewer = make_staff(world.workspace, "review_retention")
    reader = make_staff(world.workspace, "view_traces")
    stranger = make_staff(make_world().workspace, "manage_profiles")
    past = clock.now() - timedelta(seconds=5)
    days = {"retention_days": {"trace": 30, "text": 30}}
    life = {"half_life_s": 60.0}
    return [
        (manager, life, {"if_match": None}, VersionRequired),
        (manager, life, {"if_match": "0" * 64}, StaleVersion),
        (manager, life, {"effective_from": past}, InvalidRequest),
        (manager, life, {"reason": " "}, InvalidRequest),
        (manager, life, {"reason": "password=hunter2"}, InvalidRequest),
        (manager, days, {}, Forbidden),
        (manager, days | life, {}, Forbidden),
        (reviewer, life, {}, Forbidden),
        (reviewer, days | life, {}, Forbidden),
        (reader, life, {}, Forbidden),
        (stranger, life, {"if_match": policy_hash(NAME, DEFAULT)}, NotFound),
        (make_superuser(), life, {"if_match": policy_hash(NAME, DEFAULT)}, NotFound),
        (manager, {"weights": [0.0, 0.0]}, {}, StateConflict),
    ]


def test_whatever_is_refused_appends_nothing():
    world = make_world()
    auditor = make_staff(world.workspace, "audit")
    for user, document, more, problem in refusals(world):
        with pytest.raises(problem):
            publish(user, world.workspace, document, **more)
        with staff_session(auditor):
            assert not policy_versions(world.workspace.pk, NAME).exists()
            assert not AuditEntry.objects.filter(action="core.publish_policy").exists()


def test_each_field_asks_for_its_grant():
    world = make_world()
    reviewer = make_staff(world.workspace, "review_retention")
    both = make_staff(world.workspace, "review_retention", "manage_profiles")
    row = publish(reviewer, world.workspace, {"retention_days": {"trace": 30, "text": 30}})
    assert row.document["retention_days"]["trace"] == 30
    assert publish(both, world.workspace, {"half_life_s": 5.0}).version == 2
    with pytest.raises(Forbidden) as refused:
        publish(reviewer, world.workspace, {"half_life_s": 6.0})
    assert refused.value.pointer == "/half_life_s"


def test_the_default_belongs_to_superusers():
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles", "review_retention")
    with pytest.raises(Forbidden):
        publish(manager, None, {"half_life_s": 60.0})
    row = publish(make_superuser(), None, {"half_life_s": 60.0})
    assert (row.workspace_id, row.version) == (None, 2)
    with principal_session(world.principal):
        assert current_policy(world.workspace.pk, NAME).pk == row.pk


def test_the_version_is_the_content_that_the_author_saw():
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles")
    seen = policy_hash(NAME, DEFAULT)
    publish(manager, world.workspace, {"half_life_s": 60.0}, if_match=seen)
    with pytest.raises(StaleVersion) as refused:
        publish(manager, world.workspace, {"half_life_s": 90.0}, if_match=seen)
    now = policy_hash(NAME, DEFAULT | {"half_life_s": 60.0})
    assert refused.value.document()["version"] == now
    publish(manager, world.workspace, {"half_life_s": 90.0}, if_match=now)


def test_publishing_what_is_there_already_is_refused_but_a_workspace_may_hold_on_to_the_default():
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles")
    assert publish(manager, world.workspace).document == DEFAULT
    with pytest.raises(StateConflict) as refused:
        publish(manager, world.workspace)
    assert refused.value.document()["code"] == "policy_unchanged"


def test_a_version_is_audited_with_hashes_and_pointers():
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles")
    row = publish(manager, world.workspace, {"half_life_s": 60.0}, reason="slower decay")
    with staff_session(manager):
        entry = AuditEntry.objects.get(action="core.publish_policy")
    assert (entry.object_type, entry.object_id) == ("core.storedpolicy", str(row.pk))
    assert (entry.before_sha256, entry.after_sha256) == (policy_hash(NAME, DEFAULT), row.hash)
    assert entry.details == {"kind": NAME, "version": 1, "changed": ["/half_life_s"]}
    assert entry.reason == "slower decay"
    assert row.author_id == manager.pk


def test_a_preview_says_what_publishing_would_do_and_writes_nothing():
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles")
    with staff_session(manager):
        good = preview_policy(
            workspace_id=world.workspace.pk, kind=NAME, document=DEFAULT | {"half_life_s": 60.0}
        )
        assert good.version == policy_hash(NAME, DEFAULT)
        assert (good.refusal, good.effect) == (None, {"changed": 1})
        assert [(c.pointer, c.before, c.after) for c in good.change.fields] == [
            ("/half_life_s", 3600.0, 60.0)
        ]
        for change in ({"weights": [0.0]}, {"retention_days": {"trace": 5, "text": 5}}):
            refused = preview_policy(workspace_id=world.workspace.pk, kind=NAME, document=DEFAULT | change)
            assert refused.refusal is not None
        assert not policy_versions(world.workspace.pk, NAME).exists()


def test_a_kind_that_takes_effect_at_once_has_no_later(kind):
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles")
    register_kind(Kind(**{**vars(kind), "scheduled": False}))
    with pytest.raises(InvalidRequest) as refused:
        publish(
            manager, world.workspace, {"half_life_s": 6.0}, effective_from=clock.now() + timedelta(hours=1)
        )
    assert refused.value.pointer == "/effective_from"


def test_the_lock_of_a_kind_is_taken_before_anything_is_read(kind):
    world = make_world()
    manager = make_staff(world.workspace, "manage_profiles")
    taken: list[str] = []
    register_kind(Kind(**{**vars(kind), "lock": lambda: taken.append("lock")}))
    publish(manager, world.workspace, {"half_life_s": 6.0})
    assert taken == ["lock"]


def test_only_staff_publish():
    world = make_world()
    with pytest.raises(SessionError), principal_session(world.principal):
        publish_within(world.workspace, {"half_life_s": 5.0})


def test_two_apps_cannot_register_one_kind(kind):
    class Other(StrictModel):
        pass

    with pytest.raises(ValueError):
        register_kind(Kind(name=NAME, model=Other, default=Other(), permission="curate"))
    assert kind in registered_kinds()
    with pytest.raises(NotFound) as refused:
        kind_named("no")
    assert refused.value.document()["code"] == "unknown_policy_kind"


def test_differences_are_the_leaves():
    found = list(
        differences({"a": 1, "b": {"c": [1, 2], "d": 1.0}}, {"a": 1, "b": {"c": [2, 1], "d": 1}, "e": None})
    )
    assert [(change.pointer, change.before, change.after) for change in found] == [("/b/c", [1, 2], [2, 1])]


def test_the_registered_default_is_the_one_that_migrations_wrote():
    ours = [found for found in registered_kinds() if found.name != NAME]
    assert [found.name for found in ours] == ["collection", "gate", "memory", "scoring"]
    with staff_session(make_superuser()):
        for found in ours:
            assert current_policy(None, found.name).document == stored_document(found.default)
