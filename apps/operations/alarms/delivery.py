"""Sending notices: retried after 1, 5, 15 and 60 minutes, then an alarm at the other destinations.

A worker that dies between sending and noting it sends again: receivers tell repeats by `delivery`.
"""

import hashlib
import hmac
import smtplib
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage

from apps.core import canonical, clock
from apps.core.outbound import OutboundFailed, OutboundRefused, request
from apps.operations.alarms import notices, services
from apps.operations.alarms.destinations import signing_secret
from apps.operations.models import Delivery
from apps.operations.models.alarms import DestinationKind

RETRY_MINUTES = (1, 5, 15, 60)
DELIVERY_FAILED = "delivery_failed"
TIMESTAMP_HEADER = "X-Memory-Timestamp"
SIGNATURE_HEADER = "X-Memory-Signature"


class NotSent(Exception):
    """A notice did not arrive; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """`sha256=` and the HMAC-SHA256 over timestamp, full stop, body, as 64 hex digits."""
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"sha256={digest}"


def deliver_due(limit: int = 50) -> dict[str, int]:
    """Send what is due, oldest first. Network calls happen outside of any transaction."""
    counts = {"delivered": 0, "failed": 0}
    due = Delivery.objects.select_related("destination").filter(next_attempt_at__lte=clock.now())
    for delivery in due.order_by("next_attempt_at", "id")[:limit]:
        try:
            _send(delivery)
        except NotSent as failure:
            _note_failure(delivery, failure.code)
            counts["failed"] += 1
        else:
            _note_success(delivery)
            counts["delivered"] += 1
    return counts


def _send(delivery: Delivery) -> None:
    body = {**delivery.body, "delivery": str(delivery.pk)}
    if not delivery.destination.active:
        raise NotSent("destination_inactive")
    if delivery.destination.kind == DestinationKind.WEBHOOK:
        _post(delivery, body)
    else:
        _mail(delivery, body)


def _post(delivery: Delivery, body: dict[str, Any]) -> None:
    content, timestamp = canonical.dumps(body), str(int(clock.now().timestamp()))
    headers = {
        "Content-Type": "application/json",
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: signature(signing_secret(delivery.destination), timestamp, content),
    }
    try:
        answer = request("POST", delivery.destination.address, content=content, headers=headers)
    except (OutboundRefused, OutboundFailed) as error:
        raise NotSent(error.code) from None
    if not 200 <= answer.status < 300:
        raise NotSent(f"http_{answer.status}")


def _mail(delivery: Delivery, body: dict[str, Any]) -> None:
    if not settings.EMAIL_CONFIGURED:
        raise NotSent("mail_not_configured")
    mark = "TEST " if body["test"] else ""
    lines = [f"{name}: {value}" for name, value in body.items() if name != "details"]
    lines += [f"  {name}: {value}" for name, value in body["details"].items()]
    message = EmailMessage(
        subject=f"[memory] {mark}{body['notice']}: {body['source']} {body['reason']}",
        body="\n".join(lines) + "\n",
        to=[delivery.destination.address],
    )
    try:
        message.send()
    except (smtplib.SMTPException, OSError) as error:
        raise NotSent(type(error).__name__) from None


def _note_success(delivery: Delivery) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(
        delivered_at=clock.now(), next_attempt_at=None, attempts=delivery.attempts + 1, last_code=""
    )
    services.resolve(
        source=notices.source_of(delivery.destination_id),
        reasons=(DELIVERY_FAILED,),
        workspace=delivery.workspace_id,
    )


def _note_failure(delivery: Delivery, code: str) -> None:
    attempts = delivery.attempts + 1
    again = attempts <= len(RETRY_MINUTES)
    now = clock.now()
    Delivery.objects.filter(pk=delivery.pk).update(
        attempts=attempts,
        last_code=code,
        next_attempt_at=now + timedelta(minutes=RETRY_MINUTES[attempts - 1]) if again else None,
        gave_up_at=None if again else now,
    )
    if not again:
        services.raise_alarm(
            source=notices.source_of(delivery.destination_id),
            reason=DELIVERY_FAILED,
            details={"code": code},
            workspace=delivery.workspace_id,
        )
