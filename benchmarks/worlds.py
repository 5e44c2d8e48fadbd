"""Workspaces and principals for benchmarks."""

import os
from typing import Any
from uuid import UUID

_TRACES = """
INSERT INTO traces_trace (id, workspace_id, principal_id, recorded_at, mode, query, request, settings, recording,
  source_count, policy_id, latency_ms, retention_class, expires_at)
SELECT gen_random_uuid(), %(workspace)s, %(principal)s, now() - make_interval(secs => n), 'search', 'words ' || n,
  '{"limit": 10}', '{"mode": "search"}', '{"status": "complete"}', 0, gen_random_uuid(), 5, 'trace',
  now() + interval '80 days'
FROM generate_series(1, %(count)s) n
"""


def workspace(slug: str) -> UUID:
    """The workspace of that slug, made when absent."""
    from django.contrib.auth.models import User

    from apps.accounts.services import create_workspace, workspace_id
    from apps.core.db.sessions import staff_session
    from apps.core.problems import NotFound

    try:
        return workspace_id(slug)
    except NotFound:
        root = User.objects.filter(is_superuser=True).first()
        root = root or User.objects.create_superuser("benchmark", password="only-for-benchmarks")
        with staff_session(root):
            return UUID(str(create_workspace(slug=slug, name=slug).pk))


def principal(workspace: UUID, subject: str) -> Any:
    """The identity of a subject in a workspace, made when absent."""
    from apps.accounts.services import enter_principal

    return enter_principal(workspace=workspace, subject=subject)


def fill_traces(identity: Any, count: int) -> None:
    """Traces without sources, one a second back in time.

    Statistics of an empty table would make foreign keys read all of it for each new row.
    """
    import psycopg

    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(
            _TRACES, {"workspace": identity.workspace_id, "principal": identity.principal_id, "count": count}
        )
