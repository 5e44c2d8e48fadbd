"""Prints the settings of staff sign-in for a provider, out of the provider's own description."""

import json
from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.issuers.keys import ALGORITHMS
from apps.core import outbound
from memory_platform.environment import environment

WELL_KNOWN: Final = "/.well-known/openid-configuration"
MEMBERS: Final = {
    "OIDC_ISSUER": "issuer",
    "OIDC_AUTHORIZATION_URL": "authorization_endpoint",
    "OIDC_TOKEN_URL": "token_endpoint",
    "OIDC_USER_URL": "userinfo_endpoint",
    "OIDC_JWKS_URL": "jwks_uri",
}


class Command(BaseCommand):
    help = "Print the settings of staff sign-in through an OpenID provider, by what it says of itself."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("issuer", help="https address of the provider; its description is below it.")

    def handle(self, *args: Any, **options: Any) -> None:
        described = _description(options["issuer"])
        for line in _lines(described):
            self.stdout.write(line)
        callback = f"{environment().public_url.rstrip('/')}/oidc/callback/"
        self.stderr.write(
            f"Register this redirect address there, and take its client id and secret: {callback}"
        )


def _description(issuer: str) -> dict[str, Any]:
    """The discovery document (OpenID Connect Discovery 1.0, 4). Raises CommandError."""
    try:
        answer = outbound.request(
            "GET", issuer.rstrip("/") + WELL_KNOWN, headers={"Accept": "application/json"}
        )
    except outbound.OutboundRefused as error:
        hint = " (OUTBOUND_PRIVATE_HOSTS lists hosts of your own network)" * (error.code == "private_address")
        raise CommandError(f"The address may not be called: {error.code}{hint}.") from error
    except outbound.OutboundFailed as error:
        raise CommandError(f"The provider was not reached: {error.code}.") from error
    try:
        found = json.loads(answer.body) if answer.status == 200 else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CommandError(f"There is no description of a provider (status {answer.status}).")
    # To the letter but for a last slash, as it will stand in ID tokens (Discovery 1.0, 4.3).
    if str(found.get("issuer")).rstrip("/") != issuer.rstrip("/"):
        raise CommandError("The provider calls itself by another address than the one given.")
    return found


def _lines(described: dict[str, Any]) -> list[str]:
    values = {name: described.get(member) for name, member in MEMBERS.items()}
    missing = [MEMBERS[name] for name, value in values.items() if not _is_address(value)]
    if missing:
        raise CommandError(f"The provider does not say its {', '.join(missing)}, or not as an https address.")
    offered = described.get("id_token_signing_alg_values_supported") or ["RS256"]
    usable = [algorithm for algorithm in ALGORITHMS if algorithm in offered]
    if not usable:
        raise CommandError("The provider signs with no asymmetric algorithm.")
    lines = [f"{name}={value}" for name, value in values.items()]
    lines.append(f"OIDC_SIGN_ALGORITHM={usable[0]}")
    # Where nothing is said, Basic is what there is (Discovery 1.0, 3).
    if "client_secret_post" not in (described.get("token_endpoint_auth_methods_supported") or []):
        lines.append("OIDC_TOKEN_BASIC=true")
    return lines


def _is_address(value: Any) -> bool:
    """Nothing that could make a second line of settings."""
    return (
        isinstance(value, str)
        and value.startswith("https://")
        and value.isascii()
        and value.isprintable()
        and " " not in value
    )
