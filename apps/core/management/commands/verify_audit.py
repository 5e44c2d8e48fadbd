"""Recomputes the audit log's chains."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.core import audit
from apps.core.db.sessions import maintenance_session


class Command(BaseCommand):
    help = "Verify that every audit chain is whole. Exit 1 and the first broken entry otherwise."

    def handle(self, *args: Any, **options: Any) -> None:
        with maintenance_session():
            chains = audit.verify()
        for chain in chains:
            name = f"workspace {chain.workspace_id}" if chain.workspace_id else "installation"
            found = (
                f"broken at {chain.broken}" if chain.broken is not None else f"whole through {chain.through}"
            )
            self.stdout.write(f"{name}: {chain.entries} entries, {found}")
        broken = sum(chain.broken is not None for chain in chains)
        if broken:
            raise CommandError(f"{broken} of {len(chains)} chains are broken")
        self.stdout.write(f"{len(chains)} chains are whole")
