"""First half of `make docs`: writes the reference pages that the code knows best, and checks every link."""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s#]+)(?:#[^)]*)?\)|!\[[^\]]*\]\((?P<picture>[^)\s]+)\)")


def main() -> int:
    _write_reference()
    broken = [fault for page in _pages() for fault in broken_links(page)]
    for fault in broken:
        print(fault, file=sys.stderr)
    print(f"{len(_pages())} pages, {len(broken)} broken links.")
    return 1 if broken else 0


def _write_reference() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_platform.settings")
    import django
    from django.core.management import call_command, get_commands

    django.setup()
    REFERENCE.mkdir(parents=True, exist_ok=True)
    if "settings_reference" in get_commands():
        with (REFERENCE / "settings.md").open("w", encoding="utf-8") as page:
            call_command("settings_reference", stdout=page)
    if "spectacular" in get_commands():
        call_command("spectacular", file=str(REFERENCE / "openapi.yaml"), validate=True)


def _pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def broken_links(page: Path) -> list[str]:
    """Links to files that are not there; those to other places are not followed."""
    faults = []
    for match in LINK.finditer(page.read_text(encoding="utf-8")):
        target = match["target"] or match["picture"]
        if "://" in target or target.startswith(("mailto:", "#")):
            continue
        if not (page.parent / target).exists():
            faults.append(f"{page.relative_to(ROOT)}: {target} is not there")
    return faults


if __name__ == "__main__":
    sys.exit(main())
