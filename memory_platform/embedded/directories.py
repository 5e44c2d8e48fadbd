"""Folders that a server can use: reachable by its user, and short enough for a socket.

Where the wished place does not serve, the folder is made elsewhere and the wished path becomes a symbolic
link to it, so that the next start finds it again and `make clean` can remove it.
"""

import os
import stat
import tempfile
from pathlib import Path

from memory_platform.embedded.exceptions import EmbeddedError
from memory_platform.embedded.system_user import SystemUser

SOCKET_PATH_BYTES = 107  # sizeof(sun_path) is 108 with the final NUL: unix(7)
SHARED_STATE = Path("/var/lib/memory-platform")  # used by root alone
SHORT_PREFIX = "memory-"


def data_directory(wished: Path, user: SystemUser) -> Path:
    """Where a server's data lies or will lie. The parent exists and the user can reach it.

    Raises EmbeddedError when a link says that the data lies elsewhere and it does not.
    """
    if wished.is_symlink():
        target = wished.resolve()
        if not target.parent.is_dir():
            raise EmbeddedError(f"{wished} points to {target}, which is gone. Restore it, or run make clean.")
        return target
    wished.parent.mkdir(parents=True, exist_ok=True)
    if user.reaches(wished.parent):
        return wished.absolute()
    if wished.exists() and any(wished.iterdir()):
        raise EmbeddedError(
            f"The user {user.name} cannot reach {wished}: open its parents for it (chmod o+x)."
        )
    home = Path(tempfile.mkdtemp(prefix="data-", dir=shared_state()))
    home.chmod(0o711)
    if wished.exists():
        wished.rmdir()
    wished.symlink_to(home / wished.name)
    return home / wished.name


def socket_directory(wished: Path, user: SystemUser, name: str) -> Path:
    """A folder of mode 0700 of the user, in which the socket `name` has a path that can be bound."""
    if wished.is_symlink():
        target = Path(os.readlink(wished))
        if _is_private(target, user):
            return target
        wished.unlink()
    wished.parent.mkdir(parents=True, exist_ok=True)
    if _can_hold(wished, name) and user.reaches(wished.parent):
        wished.mkdir(exist_ok=True)
        user.own(wished)
        wished.chmod(0o700)
        return wished.absolute()
    if wished.is_dir():
        for leftover in wished.iterdir():
            leftover.unlink()
        wished.rmdir()
    short = Path(tempfile.mkdtemp(prefix=SHORT_PREFIX, dir=_short_parent()))
    user.own(short)
    wished.symlink_to(short)
    return short


def shared_state() -> Path:
    """The folder of root's installations whose own place the server's user cannot reach."""
    SHARED_STATE.mkdir(mode=0o711, parents=True, exist_ok=True)
    return SHARED_STATE


def _can_hold(folder: Path, name: str) -> bool:
    path = str(folder.absolute() / name)
    # libpq reads a comma in a host as a list of hosts.
    return len(os.fsencode(path)) <= SOCKET_PATH_BYTES and "," not in path


def _short_parent() -> str:
    return "/tmp" if os.access("/tmp", os.W_OK | os.X_OK) else tempfile.gettempdir()  # noqa: S108 - mkdtemp


def _is_private(folder: Path, user: SystemUser) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    mine = status.st_uid == user.uid and stat.S_IMODE(status.st_mode) == 0o700
    return stat.S_ISDIR(status.st_mode) and mine
