"""The operating-system user that a server process belongs to.

PostgreSQL refuses to run as root. Started by root, it and its data folder belong to a user of their own,
made when it is missing; started by anybody else, the server is theirs.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from memory_platform.embedded.exceptions import EmbeddedError

SERVER_USER = "memory-postgres"
STAND_INS = ("postgres", "nobody")  # where no user can be made, as on a read-only /etc


@dataclass(frozen=True, slots=True)
class SystemUser:
    name: str
    uid: int
    gid: int

    @property
    def is_another(self) -> bool:
        """Whether a process must change its user to become this one."""
        return self.uid != os.geteuid()

    def popen_options(self) -> dict[str, Any]:
        """Arguments for `subprocess` that start a process as this user, where it can stand."""
        options: dict[str, Any] = {"cwd": "/"}
        if self.is_another:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return options

    def become(self) -> None:
        """Turn this process into one of the user, for good."""
        if self.is_another:
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)

    def own(self, path: Path) -> None:
        if self.is_another:
            os.chown(path, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Whether the user may enter the folder, or run the file; asked of the kernel, not of mode bits."""
        if not self.is_another:
            return os.access(path, os.X_OK)
        answer = subprocess.run(["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)], **self.popen_options())
        return answer.returncode == 0


def this_user() -> SystemUser:
    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container may run under a number that has no name
        name = str(uid)
    return SystemUser(name, uid, os.getegid())


@lru_cache
def postgres_user() -> SystemUser:
    """Who runs PostgreSQL: this user, or the server's own when this one is root."""
    if os.geteuid() != 0:
        user = this_user()
        if user.name == str(user.uid):
            raise EmbeddedError(
                f"PostgreSQL needs a user with a name, and number {user.uid} has none here. "
                f"Add one to /etc/passwd, or name a server of your own with DATABASE_URL."
            )
        return user
    if found := _named(SERVER_USER) or _made():
        return found
    for name in STAND_INS:
        if found := _named(name):
            return found
    raise EmbeddedError(
        f"PostgreSQL does not run as root, and no user for it could be made. "
        f"Create one (useradd --system {SERVER_USER}) or start as an ordinary user."
    )


def _named(name: str) -> SystemUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return SystemUser(name, entry.pw_uid, entry.pw_gid)


def _made() -> SystemUser | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    adduser = shutil.which("adduser", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd:
        command = [useradd, "--system", "--user-group", "--no-create-home"]
        command += ["--shell", "/usr/sbin/nologin", SERVER_USER]
    elif adduser:  # BusyBox
        command = [adduser, "-S", "-H", "-s", "/sbin/nologin", SERVER_USER]
    else:
        return None
    # Two start-ups at once may both try; the one that loses finds the user of the other.
    subprocess.run(command, capture_output=True, check=False)
    return _named(SERVER_USER)
