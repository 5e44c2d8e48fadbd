"""The schema of the API: pydantic models as bodies and answers, and the problem document of every refusal.

Views say `@extend_schema(request=Model, responses={200: Model})` with pydantic models or serializers alike;
what every route may answer (401, 403, …) is added here once.
"""

import re
from typing import Any, Literal

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from pydantic import BaseModel, Field
from pydantic.json_schema import model_json_schema

from apps.core.problems import MEDIA_TYPE

Direction = Literal["request", "response"]


class ProblemDocument(BaseModel):
    """A refusal (RFC 9457). `code` is stable; more members may follow where a code says so."""

    type: str
    title: str
    status: int
    code: str = Field(description="Stable name of the refusal.")
    detail: str | None = None
    pointer: str | None = Field(None, description="JSON pointer to the field that is wrong.")


class PydanticModel(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """A pydantic model where drf-spectacular expects a serializer.

    A request shows what is accepted, an answer what is sent (types may differ: a Decimal is sent as text), so
    that each is a component of its own: `ThingRequest` and `Thing`.
    """

    target_class = "pydantic.BaseModel"
    match_subclasses = True
    priority = 1

    def get_name(self, auto_schema: AutoSchema, direction: Direction) -> str:
        # drf-spectacular puts "Request" behind the names of what is sent.
        name: str = self.target.__name__
        return name.removesuffix("Request") if direction == "request" else name

    def get_identity(self, auto_schema: AutoSchema, direction: Direction) -> Any:
        # A model that is also a part of another is registered by its name there.
        return self.get_name(auto_schema, direction) + _suffix(direction)

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        schema = model_json_schema(
            self.target,
            ref_template="#/components/schemas/{model}" + _suffix(direction),
            mode="validation" if direction == "request" else "serialization",
        )
        for name, part in schema.pop("$defs", {}).items():
            full = name + _suffix(direction)
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name=full, type=ResolvedComponent.SCHEMA, schema=part, object=full
            )
            auto_schema.registry.register_on_missing(component)
        return schema


def _suffix(direction: Direction) -> str:
    return "Request" if direction == "request" else ""


def only_api(endpoints: list[tuple[str, str, str, Any]]) -> list[tuple[str, str, str, Any]]:
    """Endpoints of the schema: what lies under /v1/ (health and metrics speak formats of their own)."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith("/v1/")]


class PlatformSchema(AutoSchema):
    """Adds to every operation the refusals that any route may answer, all of them problem documents."""

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = super()._get_response_bodies(direction)
        document: Any = ProblemDocument
        problem = {
            "content": {MEDIA_TYPE: {"schema": self.resolve_serializer(document, "response").ref}},
        }
        for code, says in self._refusals().items():
            found.setdefault(code, {"description": says, **problem})
        return found

    def _refusals(self) -> dict[str, str]:
        refusals = {"400": "The request is not well formed."}
        if getattr(self.view, "required_scope", None) is not None:
            refusals["401"] = "No credential, or an invalid one."
            refusals["403"] = "The credential lacks the scope, or is of the other kind of caller."
        if "{" in self.path:
            refusals["404"] = "Not there, or not the caller's."
        return refusals | {"429": "Too many requests.", "default": "Any other refusal."}

    def get_operation_id(self) -> str:
        """From path and method, so that no two are alike: `traces_by_trace_id_get`. A view may name its own."""
        parts = [part for part in re.split(r"[/:]", self.path) if part][1:]
        words = [f"by_{part[1:-1]}" if part.startswith("{") else part.replace("-", "_") for part in parts]
        return "_".join([*words, self.method.lower()])

    def get_tags(self) -> list[str]:
        """The first part of the path behind the version: `/v1/traces/{id}` → traces."""
        parts = [part for part in self.path.split("/") if part and not part.startswith("{")]
        return [parts[1].split(":")[0] if len(parts) > 1 else "platform"]

    def get_description(self) -> str:  # type: ignore[override]
        description = super().get_description()
        scope = getattr(self.view, "required_scope", None)
        if scope is None:
            return description
        needed = scope if isinstance(scope, str) else scope.get(self.method, "")
        return f"{description}\n\nToken scope: `{needed}`." if needed else description
