"""The settings that the embedded PostgreSQL runs with, written to `memory.conf` at each start.

`postgresql.conf` includes this file first, so that what an operator adds there wins.
"""

import os
from pathlib import Path

MEGABYTE = 1024 * 1024
SHARED_MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - asked for its size only
SMALLEST_SHARED_MEMORY = 256 * MEGABYTE  # below it, parallel queries and index builds fail in containers
FILE_NAME = "memory.conf"


def memory_bytes() -> int:
    """Memory of the machine, or what its container is allowed, in bytes."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(machine, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no control group, or "max"
        return machine


def settings_text(*, durable: bool) -> str:
    """`memory.conf` for this machine. Only a test that may lose its data runs without `durable`."""
    lines = [f"{name} = '{value}'" for name, value in (_sizes() | _durability(durable) | _FIXED).items()]
    return "\n".join(["# Written at each start; put changes at the end of postgresql.conf.", *lines, ""])


def _sizes() -> dict[str, str]:
    megabytes = memory_bytes() // MEGABYTE
    small_shared_memory = _shared_memory_bytes() < SMALLEST_SHARED_MEMORY
    return {
        "shared_buffers": f"{min(max(megabytes // 8, 64), 512)}MB",
        "effective_cache_size": f"{max(megabytes // 2, 128)}MB",
        "maintenance_work_mem": f"{min(max(megabytes // 16, 64), 512)}MB",
        "work_mem": "8MB",
        "max_connections": "100",
        "dynamic_shared_memory_type": "mmap" if small_shared_memory else "posix",
    }


def _shared_memory_bytes() -> int:
    try:
        status = os.statvfs(SHARED_MEMORY_FOLDER)
    except OSError:
        return 0
    return status.f_blocks * status.f_frsize


def _durability(durable: bool) -> dict[str, str]:
    switch = "on" if durable else "off"
    return {
        "fsync": switch,
        "synchronous_commit": switch,
        "full_page_writes": switch,
        "max_wal_size": "1GB",
        "checkpoint_timeout": "10min",
    }


# Logs carry no query text, no parameter and no row: statements are never logged, details are left out.
_FIXED = {
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
    "log_destination": "stderr",
    "logging_collector": "off",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_min_error_statement": "panic",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_error_verbosity": "terse",
}
