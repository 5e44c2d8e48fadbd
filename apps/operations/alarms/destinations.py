"""Where notices go. Changes are governed, with a reason and an audit entry.

Those of a workspace are its operators' (`operate_collection`), those of the installation the superusers'.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils.crypto import salted_hmac

from apps.core import audit, clock
from apps.core.db.sessions import current_staff
from apps.core.outbound import OutboundFailed, OutboundRefused, check_url, checked_address
from apps.core.problems import InvalidRequest, NotFound, Unprocessable
from apps.operations.alarms import notices
from apps.operations.models import Delivery, Destination
from apps.operations.models.alarms import DestinationKind, DestinationUse, Notice

CONFIRM_WITHIN = timedelta(days=180)


def signing_secret(destination: Destination) -> str:
    """The secret with which notices to a webhook are signed, 64 hex digits.

    Derived from SECRET_KEY, the destination and its generation, so that neither the database nor a backup holds
    it. Another SECRET_KEY makes another secret.
    """
    value = f"{destination.pk}:{destination.secret_generation}"
    return salted_hmac("operations.destination", value, algorithm="sha256").hexdigest()


def save_destination(*, destination: Destination, reason: str) -> Destination:
    """Add or change a destination, in a staff session. A private address is refused here, too."""
    current_staff()
    try:
        if destination.kind == DestinationKind.WEBHOOK:
            checked_address(*check_url(destination.address))
        else:
            validate_email(destination.address)
    except (OutboundRefused, OutboundFailed) as refused:
        raise Unprocessable("This address is refused.", pointer="/address", code=refused.code) from None
    except ValidationError:
        raise InvalidRequest("Not an e-mail address.", pointer="/address") from None
    with transaction.atomic():
        new = destination._state.adding
        if not new:
            _forget_confirmation(destination)
        destination.save()
        _audit("add_destination" if new else "change_destination", destination, reason)
    return destination


def _forget_confirmation(destination: Destination) -> None:
    """What was confirmed was another address."""
    before = Destination.objects.filter(pk=destination.pk).first()
    if before is not None and before.address != destination.address:
        destination.confirmed_at = destination.confirmed_by = None


def confirm_destination(*, destination_id: UUID, reason: str) -> Destination:
    """A human has received what was sent there. Holds for 180 days."""
    staff = current_staff()
    with transaction.atomic():
        destination = _find(destination_id)
        destination.confirmed_at, destination.confirmed_by_id = clock.now(), staff.user_id
        destination.save(update_fields=["confirmed_at", "confirmed_by"])
        _audit("confirm_destination", destination, reason)
    return destination


def rotate_secret(*, destination_id: UUID, reason: str) -> Destination:
    """Another signing secret, from the next notice on."""
    current_staff()
    with transaction.atomic():
        destination = _find(destination_id)
        destination.secret_generation += 1
        destination.save(update_fields=["secret_generation"])
        _audit("rotate_destination_secret", destination, reason)
    return destination


def send_test(*, destination_id: UUID | None = None) -> int:
    """Queue a test alarm for the picked destination, else for all test destinations; opens no live alarm.

    Returns for how many. In a staff session with `operate_collection`.
    """
    current_staff()
    if destination_id is not None:
        wanted = list(Destination.objects.filter(pk=destination_id))
        if not wanted:
            raise NotFound(code="unknown_destination")
    else:
        wanted = list(Destination.objects.filter(active=True, use=DestinationUse.TEST))
    with transaction.atomic():
        for destination in wanted:
            Delivery.objects.create(
                workspace_id=destination.workspace_id,
                destination=destination,
                notice=Notice.TEST,
                body=notices.test_body(),
                created_at=clock.now(),
                next_attempt_at=clock.now(),
            )
            _audit("send_test_alarm", destination, "")
    return len(wanted)


def is_confirmed(destination: Destination) -> bool:
    """Whether a human confirmed it within 180 days."""
    confirmed = destination.confirmed_at
    return confirmed is not None and confirmed > clock.now() - CONFIRM_WITHIN


def _find(destination_id: UUID) -> Destination:
    found = Destination.objects.select_for_update().filter(pk=destination_id).first()
    if found is None:
        raise NotFound(code="unknown_destination")
    return found


def _audit(action: str, destination: Destination, reason: str) -> None:
    details: dict[str, Any] = {"kind": destination.kind, "use": destination.use, "active": destination.active}
    audit.record(
        f"operations.{action}",
        "operations.destination",
        destination.pk,
        workspace=destination.workspace_id,
        reason=reason,
        details=details,
    )
