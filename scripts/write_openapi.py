"""`make openapi`: writes the published description of the API, docs/openapi.json, from the code."""

import json
import os
import sys
from pathlib import Path
from typing import Any

PUBLISHED = Path(__file__).resolve().parent.parent / "docs" / "openapi.json"


def generated() -> dict[str, Any]:
    """The document as `/v1/schema` serves it."""
    from drf_spectacular.generators import SchemaGenerator

    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return dict(json.loads(json.dumps(document, default=str)))


def as_text(document: dict[str, Any]) -> str:
    """In one order, so that a change of the API is a small difference."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_platform.settings")
    import django

    django.setup()
    PUBLISHED.write_text(as_text(generated()), encoding="utf-8")
    print(PUBLISHED.relative_to(PUBLISHED.parent.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
