"""Alarms: one open per source and reason, repeated, taken up, closed by a clean reading, and delivered."""

import hmac
import json
import socket
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import DatabaseError

from apps.core import clock
from apps.core.db.sessions import maintenance_session, staff_session
from apps.core.problems import InvalidRequest, NotFound, Unprocessable
from apps.operations import alarms, watch
from apps.operations.alarms.delivery import SIGNATURE_HEADER, TIMESTAMP_HEADER, deliver_due, signature
from apps.operations.models import Alarm, Delivery, Destination
from tests.support.factories import make_staff, make_world
from tests.support.tls import tls_receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(tmp_path, monkeypatch, settings):
    with tls_receiver(tmp_path) as (found, authority):
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        settings.OUTBOUND_PRIVATE_HOSTS = frozenset({"localhost"})
        yield found


def make_destination(world, **more) -> Destination:
    fields = {"name": "ops", "kind": "email", "address": "ops@example.org"} | more
    workspace = fields.get("workspace")
    user = make_staff(workspace, "operate_collection") if workspace else world.superuser
    with staff_session(user):
        return alarms.save_destination(destination=Destination(**fields), reason="set up")


def raise_one(**more) -> Alarm:
    alarms.raise_alarm(**({"source": "tests.source", "reason": "overdue", "details": {"seconds": 7}} | more))
    return Alarm.objects.latest("opened_at")


def test_one_is_open_per_source_and_reason() -> None:
    first = raise_one()
    again = raise_one(details={"seconds": 9})
    assert again.pk == first.pk
    assert (again.times_seen, again.details) == (2, {"seconds": 9})
    raise_one(reason="failing")
    raise_one(source="tests.other")
    assert Alarm.objects.count() == 3
    alarms.resolve(source="tests.source", reasons=("overdue",))
    assert raise_one().pk != first.pk


def test_workspaces_have_alarms_of_their_own() -> None:
    world = make_world()
    raise_one()
    raise_one(workspace=world.workspace.pk)
    assert Alarm.objects.count() == 2
    alarms.resolve(source="tests.source", workspace=world.workspace.pk)
    assert Alarm.objects.get(resolved_at=None).workspace_id is None


def test_a_whole_reading_raises_its_reasons_and_closes_the_others() -> None:
    alarms.settle(source="tests.source", readings={"a": {}, "b": {"count": 1}})
    raise_one(source="tests.other")
    alarms.settle(source="tests.source", readings={"b": {"count": 2}, "c": {}})
    still = set(Alarm.objects.filter(resolved_at=None).values_list("source", "reason"))
    assert still == {("tests.source", "b"), ("tests.source", "c"), ("tests.other", "overdue")}


def test_a_clean_reading_closes_with_a_notice_and_another_alarm_is_a_new_one() -> None:
    make_destination(make_world())
    alarms.settle(source="tests.source", readings={"a": {"count": 1}})
    alarms.settle(source="tests.source", readings={"a": {"count": 2}})
    alarms.settle(source="tests.source", readings={})
    told = Delivery.objects.order_by("id").values_list("notice", "alarm__reason")
    assert list(told) == [("opened", "a"), ("resolved", "a")]
    alarms.settle(source="tests.source", readings={})
    assert Delivery.objects.count() == 2
    alarms.settle(source="tests.source", readings={"a": {}})
    assert Alarm.objects.filter(reason="a").count() == 2


@pytest.mark.parametrize("text", ["who asked what?", "user@example.org", ["a"], {"query": "x"}, "a" * 200])
def test_details_are_numbers_and_codes(text) -> None:
    with pytest.raises(TypeError) as refused:
        alarms.raise_alarm(source="tests.source", reason="x", details={"given": text})
    assert str(text) not in str(refused.value)


@pytest.mark.django_db(transaction=True)
def test_inside_a_session_an_alarm_waits_for_the_commit() -> None:
    with maintenance_session():
        alarms.raise_alarm(source="tests.source", reason="committed")
    with pytest.raises(ZeroDivisionError), maintenance_session():  # noqa: PT012
        alarms.raise_alarm(source="tests.source", reason="rolled_back")
        1 / 0  # noqa: B018
    assert [alarm.reason for alarm in Alarm.objects.all()] == ["committed"]


def test_it_is_repeated_every_four_hours_until_somebody_takes_it_up() -> None:
    world = make_world()
    make_destination(world)
    with clock.frozen(clock.now()) as time:
        alarm = raise_one()
        notices = Delivery.objects.filter(alarm=alarm)
        assert [d.notice for d in notices.all()] == ["opened"]
        for hours, count in ((3.9, 1), (0.2, 2), (3, 2), (1.1, 3)):
            time.advance(timedelta(hours=hours))
            alarms.repeat_unacknowledged()
            assert notices.count() == count
        operator = make_staff(world.workspace, "operate_collection")
        with staff_session(operator):
            taken = alarms.acknowledge(alarm_id=alarm.pk, reason="looking at it")
        assert (taken.acknowledged_by_id, taken.acknowledged_at) == (operator.pk, clock.now())
        time.advance(timedelta(hours=9))
        assert alarms.repeat_unacknowledged() == 0
        alarms.resolve(source="tests.source")
        assert notices.order_by("-id").values_list("notice", flat=True)[0] == "resolved"


def test_acknowledging_needs_the_grant_and_a_reason() -> None:
    mine, other = make_world(), make_world()
    alarm = raise_one(workspace=mine.workspace.pk)
    reader, operator = (
        make_staff(mine.workspace, "audit"),
        make_staff(mine.workspace, "operate_collection"),
    )
    stranger = make_staff(other.workspace, "operate_collection", "audit")
    with staff_session(operator), pytest.raises(InvalidRequest):
        alarms.acknowledge(alarm_id=alarm.pk, reason=" ")
    for user in (reader, stranger):
        with staff_session(user), pytest.raises(NotFound):
            alarms.acknowledge(alarm_id=alarm.pk, reason="mine")
    with staff_session(reader):
        assert Alarm.objects.count() == 1
    with staff_session(stranger):
        assert not Alarm.objects.exists()


def test_alarms_of_the_installation_are_seen_by_whoever_watches_anywhere() -> None:
    world = make_world()
    raise_one()
    for grants, sees in ((("audit",), True), (("view_traces", "curate"), False)):
        with staff_session(make_staff(world.workspace, *grants)):
            assert Alarm.objects.exists() is sees


def test_notices_go_to_live_destinations_of_the_alarms_workspace() -> None:
    mine, other = make_world(), make_world()
    several: dict[str, dict[str, Any]] = {
        "all": {},
        "mine": {"workspace": mine.workspace},
        "other": {"workspace": other.workspace},
        "test": {"use": "test"},
        "off": {"active": False},
    }
    for name, more in several.items():
        make_destination(mine, name=name, **more)
    raise_one(workspace=mine.workspace.pk)
    assert set(Delivery.objects.values_list("destination__name", flat=True)) == {"all", "mine"}
    Delivery.objects.update(next_attempt_at=None)
    raise_one()
    queued = Delivery.objects.exclude(next_attempt_at=None)
    assert [d.destination.name for d in queued] == ["all"]


def test_a_webhook_is_signed_and_says_codes_counts_and_a_link(receiver, settings) -> None:
    settings.PUBLIC_URL = "https://memory.example"
    destination = make_destination(make_world(), kind="webhook", address=receiver.url)
    alarm = raise_one()
    assert deliver_due() == {"delivered": 1, "failed": 0}
    (received,) = receiver.requests
    secret = alarms.signing_secret(destination)
    timestamp = received.headers[TIMESTAMP_HEADER]
    assert received.headers[SIGNATURE_HEADER] == signature(secret, timestamp, received.body)
    # As a receiver computes it, from the docs alone.
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + received.body, "sha256").hexdigest()
    assert received.headers["X-Memory-Signature"] == f"sha256={digest}"
    assert received.headers["X-Memory-Timestamp"] == timestamp
    assert abs(int(timestamp) - clock.now().timestamp()) < 60
    body = json.loads(received.body)
    delivery = Delivery.objects.get()
    assert (body["source"], body["reason"], body["details"]) == ("tests.source", "overdue", {"seconds": 7})
    assert (body["notice"], body["test"], body["delivery"]) == ("opened", False, str(delivery.pk))
    assert body["link"] == f"https://memory.example/admin/operations/alarm/{alarm.pk}/change/"
    assert delivery.delivered_at is not None
    assert deliver_due() == {"delivered": 0, "failed": 0}


def test_a_rotated_secret_signs_otherwise() -> None:
    world = make_world()
    destination = make_destination(
        world, kind="webhook", address="https://203.0.113.7.example/", active=False
    )
    before = alarms.signing_secret(destination)
    with staff_session(world.superuser):
        rotated = alarms.rotate_secret(destination_id=destination.pk, reason="leaked")
    assert alarms.signing_secret(rotated) != before
    assert len(before) == 64


@pytest.fixture(autouse=True)
def names_resolve_to_the_outside(monkeypatch):
    """No test asks a name server: `.example` is somewhere public, `inside.example` is not."""
    original = socket.getaddrinfo

    def resolve(host, port, *more, **options):
        if isinstance(host, str) and host.endswith(".example"):
            address = "10.1.2.3" if host == "inside.example" else "93.184.216.34"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]
        return original(host, port, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("http://hooks.example/", "not_https"),
        ("https://127.0.0.1/", "private_address"),
        ("https://[::1]/", "private_address"),
        ("https://[::ffff:10.0.0.1]/", "private_address"),
        ("https://169.254.169.254/latest/", "private_address"),
        ("https://inside.example/", "private_address"),
        ("https://user:secret@hooks.example/", "not_a_url"),
    ],
)
def test_webhooks_to_private_or_plain_addresses_are_refused(address, code) -> None:
    with pytest.raises(Unprocessable) as refused:
        make_destination(make_world(), kind="webhook", address=address)
    assert refused.value.shown_code == code
    assert "secret" not in str(refused.value.document())


def test_an_address_that_became_private_is_refused_when_sending(monkeypatch) -> None:
    make_destination(make_world(), kind="webhook", address="https://hooks.example/")
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, port, *m, **o: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))],
    )
    raise_one()
    assert deliver_due() == {"delivered": 0, "failed": 1}
    assert Delivery.objects.get().last_code == "private_address"


def test_redirects_are_not_followed(receiver) -> None:
    make_destination(make_world(), kind="webhook", address=receiver.url)
    receiver.status, receiver.location = 302, receiver.url + "/elsewhere"
    raise_one()
    assert deliver_due()["failed"] == 1
    assert [received.path for received in receiver.requests] == ["/hook"]
    assert Delivery.objects.get().delivered_at is None


def test_a_failed_delivery_is_retried_and_then_an_alarm_at_the_other_destinations(receiver) -> None:
    world = make_world()
    broken = make_destination(world, name="broken", kind="webhook", address=receiver.url)
    receiver.status = 500
    with clock.frozen(clock.now()) as time:
        raise_one()
        delivery = Delivery.objects.get()
        other = make_destination(world, name="other")
        for minutes in (1, 5, 15, 60):
            deliver_due()
            delivery.refresh_from_db()
            assert delivery.next_attempt_at == clock.now() + timedelta(minutes=minutes)
            assert delivery.last_code == "http_500"
            assert not Alarm.objects.filter(reason="delivery_failed").exists()
            time.advance(timedelta(minutes=minutes) - timedelta(seconds=1))
            assert deliver_due() == {"delivered": 0, "failed": 0}
            time.advance(timedelta(seconds=1))
        deliver_due()
        delivery.refresh_from_db()
        assert (delivery.attempts, delivery.next_attempt_at) == (5, None)
        assert delivery.gave_up_at == clock.now()
        alarm = Alarm.objects.get(reason="delivery_failed")
        assert alarm.details == {"code": "http_500"}
        assert [d.destination_id for d in Delivery.objects.filter(alarm=alarm)] == [other.pk]
        receiver.status = 204
        raise_one(reason="another")
        deliver_due()
        alarm.refresh_from_db()
        assert alarm.resolved_at is not None
    assert broken.pk != other.pk


def test_a_test_alarm_reaches_the_test_destination_alone_and_opens_none(receiver) -> None:
    world = make_world()
    make_destination(world, name="live", kind="email")
    make_destination(world, name="test", kind="webhook", address=receiver.url, use="test")
    with staff_session(make_staff(world.workspace, "operate_collection")):
        assert alarms.send_test() == 1
    assert deliver_due()["delivered"] == 1
    assert json.loads(receiver.requests[0].body)["test"] is True
    assert not Alarm.objects.exists()
    assert mail.outbox == []


def test_a_test_alarm_reaches_the_picked_destination_and_says_test(settings) -> None:
    settings.EMAIL_CONFIGURED = True
    world = make_world()
    picked = make_destination(world, name="live")
    make_destination(world, name="other")
    with staff_session(world.superuser):
        assert alarms.send_test(destination_id=picked.pk) == 1
    deliver_due()
    (message,) = mail.outbox
    assert "TEST" in message.subject
    assert message.to == ["ops@example.org"]


def test_mail_without_a_server_fails_with_a_code() -> None:
    make_destination(make_world())
    raise_one()
    assert deliver_due() == {"delivered": 0, "failed": 1}
    assert Delivery.objects.get().last_code == "mail_not_configured"


def test_only_who_operates_changes_destinations() -> None:
    world = make_world()
    of_workspace = make_destination(world, workspace=world.workspace)
    of_all = make_destination(world)
    auditor, operator = (make_staff(world.workspace, grant) for grant in ("audit", "operate_collection"))
    for user, refused in ((auditor, (of_workspace, of_all)), (operator, (of_all,))):
        with staff_session(user):
            assert Destination.objects.count() == 2
            for destination in refused:
                with pytest.raises(NotFound):
                    alarms.confirm_destination(destination_id=destination.pk, reason="seen")
        mine = Destination(name="mine", kind="email", address="x@example.org")
        with pytest.raises(DatabaseError), staff_session(user):
            alarms.save_destination(destination=mine, reason="x")


def test_nowhere_to_send_and_nobody_confirmed_are_alarms() -> None:
    world = make_world()
    with clock.frozen(clock.now()) as time:
        watch.check_destinations()
        assert Alarm.objects.get(resolved_at=None).reason == "no_destination"
        destination = make_destination(world)
        watch.check_destinations()
        assert Alarm.objects.get(resolved_at=None).reason == "no_confirmed_destination"
        with staff_session(world.superuser):
            alarms.confirm_destination(destination_id=destination.pk, reason="received the test")
        watch.check_destinations()
        assert not Alarm.objects.filter(resolved_at=None).exists()
        time.advance(timedelta(days=180, seconds=1))
        watch.check_destinations()
        assert Alarm.objects.get(resolved_at=None).reason == "no_confirmed_destination"


def test_another_address_must_be_confirmed_anew() -> None:
    world = make_world()
    destination = make_destination(world)
    with staff_session(world.superuser):
        confirmed = alarms.confirm_destination(destination_id=destination.pk, reason="received")
        confirmed.address = "elsewhere@example.org"
        alarms.save_destination(destination=confirmed, reason="moved")
        confirmed.refresh_from_db()
    assert confirmed.confirmed_at is None
