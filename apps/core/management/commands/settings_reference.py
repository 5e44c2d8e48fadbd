"""Prints every setting of the platform, for the operator's guide."""

import json
from typing import Any, get_args

from django.core.management.base import BaseCommand
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from memory_platform.environment import BASE_DIR, Environment


class Command(BaseCommand):
    help = "Print all settings that the environment may give, as a Markdown table."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("| setting | type | default | meaning |\n|---|---|---|---|")
        for name, field in Environment.model_fields.items():
            cells = (f"`{name.upper()}`", kind(field), default(field), field.description or "")
            self.stdout.write("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")


def kind(field: FieldInfo) -> str:
    """The type in words; a secret is named as such."""
    annotation = field.annotation
    parts = [part for part in get_args(annotation) if part is not type(None)]
    if len(parts) == 1 and type(None) in get_args(annotation):
        annotation = parts[0]
    if annotation is SecretStr:
        return "secret"
    names = {bool: "true or false", int: "number", float: "number", str: "text"}
    if annotation in names:
        return names[annotation]
    plain = getattr(annotation, "__origin__", annotation)
    known = {list: "JSON list", dict: "JSON object"}
    return known.get(plain, "path" if getattr(plain, "__name__", "") == "Path" else "text")  # type: ignore[arg-type]


def default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return f"`{text.replace(str(BASE_DIR), '.')}`" if text else "empty"
