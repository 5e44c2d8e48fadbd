"""Trusted issuers: whose JWTs a workspace accepts. Managed by superusers."""

from typing import Any
from uuid import UUID

from apps.accounts import selectors, subjects
from apps.accounts.caller import SCOPES
from apps.accounts.issuers import keys
from apps.accounts.models import TrustedIssuer
from apps.core import audit, outbound
from apps.core.problems import InvalidRequest, NotFound, StateConflict

CHANGEABLE = (
    "jwks_url",
    "pinned_keys",
    "subject_claim",
    "algorithms",
    "scopes",
    "scope_claim",
    "speaks_for_user",
    "active",
)


def create_issuer(
    *,
    workspace: UUID,
    iss: str,
    audience: str,
    subject_prefix: str,
    algorithms: list[str],
    scopes: list[str],
    jwks_url: str = "",
    pinned_keys: list[dict[str, Any]] | None = None,
    reason: str = "",
    **more: Any,
) -> TrustedIssuer:
    """Trust an issuer. InvalidRequest names the field; StateConflict: it leads elsewhere already."""
    selectors.require_superuser()
    issuer = TrustedIssuer(
        workspace_id=workspace,
        iss=iss,
        audience=audience,
        subject_prefix=subject_prefix,
        algorithms=algorithms,
        scopes=sorted(set(scopes)),
        jwks_url=jwks_url,
        pinned_keys=pinned_keys or [],
        **more,
    )
    check_issuer(issuer)
    if TrustedIssuer.objects.filter(iss=iss, audience=audience, active=True).exists():
        raise StateConflict("This issuer and audience are trusted already.", code="issuer_exists")
    issuer.save(force_insert=True)
    _record("accounts.create_issuer", issuer, reason)
    return issuer


def change_issuer(issuer_id: UUID, *, reason: str, **changes: Any) -> TrustedIssuer:
    """Change what may change (keys, algorithms, scopes, active); its name, audience and prefix never do.

    Raises NotFound, InvalidRequest, StateConflict.
    """
    selectors.require_superuser()
    issuer = TrustedIssuer.objects.filter(pk=issuer_id).first()
    if issuer is None:
        raise NotFound(code="unknown_issuer")
    for name, value in changes.items():
        if name not in CHANGEABLE:
            raise InvalidRequest("This cannot be changed; trust another issuer instead.", pointer=f"/{name}")
        setattr(issuer, name, value)
    check_issuer(issuer)
    others = TrustedIssuer.objects.filter(iss=issuer.iss, audience=issuer.audience, active=True)
    if issuer.active and others.exclude(pk=issuer.pk).exists():
        raise StateConflict("This issuer and audience are trusted already.", code="issuer_exists")
    issuer.save(update_fields=list(changes))
    _record("accounts.change_issuer", issuer, reason)
    return issuer


def check_issuer(issuer: TrustedIssuer) -> None:
    """Raises InvalidRequest with a pointer to what may not be trusted."""
    if not issuer.iss or not issuer.audience:
        raise InvalidRequest("An issuer has a name and an audience.", pointer="/iss")
    if not issuer.algorithms or set(issuer.algorithms) - set(keys.ALGORITHMS):
        raise InvalidRequest(f"Algorithms are {', '.join(keys.ALGORITHMS)}.", pointer="/algorithms")
    if set(issuer.scopes) - set(SCOPES):
        raise InvalidRequest(f"Scopes are {', '.join(SCOPES)}.", pointer="/scopes")
    subjects.check_prefix(issuer.subject_prefix)
    _check_keys(issuer)
    _check_prefix_is_apart(issuer)


def _check_keys(issuer: TrustedIssuer) -> None:
    if not issuer.jwks_url and not issuer.pinned_keys:
        raise InvalidRequest("An issuer has a key set address or pinned keys.", pointer="/jwks_url")
    if issuer.jwks_url:
        try:
            outbound.check_url(issuer.jwks_url)
        except outbound.OutboundRefused as error:
            raise InvalidRequest("The key set is at an https address.", pointer="/jwks_url") from error
    for index, key in enumerate(issuer.pinned_keys):
        try:
            keys.check_key(key)
        except keys.UnusableKey as error:
            raise InvalidRequest(str(error), pointer=f"/pinned_keys/{index}") from error


def _check_prefix_is_apart(issuer: TrustedIssuer) -> None:
    """Two issuers whose prefixes begin alike could name the same principal."""
    others = TrustedIssuer.objects.filter(workspace_id=issuer.workspace_id).exclude(pk=issuer.pk)
    for other in others:
        if other.iss == issuer.iss and other.subject_prefix == issuer.subject_prefix:
            continue
        if other.subject_prefix.startswith(issuer.subject_prefix) or issuer.subject_prefix.startswith(
            other.subject_prefix
        ):
            raise InvalidRequest("Another issuer's subjects begin like that.", pointer="/subject_prefix")


def _record(action: str, issuer: TrustedIssuer, reason: str) -> None:
    keys.forget()
    audit.record(
        action,
        "accounts.trustedissuer",
        issuer.pk,
        workspace=issuer.workspace_id,
        reason=reason,
        details={"algorithms": issuer.algorithms, "scopes": issuer.scopes, "active": issuer.active},
    )
