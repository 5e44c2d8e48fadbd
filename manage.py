#!/usr/bin/env python
"""Entry point of every command of the platform."""

import os
import sys

# These act on the schema or compare it as its owner; every other command runs as the application.
OWNER_COMMANDS = {
    "migrate",
    "prepare_database",
    "makemigrations",
    "sqlmigrate",
    "showmigrations",
    "verify_roles",
    "journal_gate",
    "embedder",
}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_platform.settings")
    if len(sys.argv) > 1 and sys.argv[1] in OWNER_COMMANDS:
        os.environ.setdefault("MEMORY_DATABASE_LOGIN", "owner")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
