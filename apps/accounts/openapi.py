"""How the schema of the API describes its credential."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

from apps.accounts.api_auth import CallerAuthentication


class CallerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = CallerAuthentication
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token, or a JWT of an issuer that the workspace trusts.",
        }
