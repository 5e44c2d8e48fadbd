"""Files that only their owner may read: generated passwords, keys and connection URLs."""

import json
import os
import secrets
from pathlib import Path

SECRET_NAMES = ("admin", "owner", "app", "probe", "secret_key")


def write_private(path: Path, text: str) -> None:
    """Write whole or not at all, mode 0600 from the first byte."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def generated_secrets(path: Path) -> dict[str, str]:
    """The installation's random secrets, made once: 256 bits each, the signing key 384."""
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    missing = [name for name in SECRET_NAMES if name not in found]
    if missing:
        found |= {name: secrets.token_urlsafe(48 if name == "secret_key" else 32) for name in missing}
        write_private(path, json.dumps(found, indent=2) + "\n")
    return found
