"""What of the journal waits for a person, for the start page: reviews that fall due, copies that nobody attested."""

from datetime import timedelta
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse

from apps.core import clock, ui
from apps.core.access import current_workspace, workspace_choices, workspaces_with
from apps.observations.selectors.staff import overdue_copies_by_workspace
from apps.observations.services.exports import ATTEST_GRANTS
from apps.operations import reviews

REVIEW_SOON = timedelta(days=7)


def journal_needs(request: HttpRequest) -> list[ui.Record]:
    """Rows of *Needs you*, what is overdue first."""
    return [*_copies(request), *_reviews(request)]


def _mine(request: HttpRequest, *grants: str) -> dict[UUID, str]:
    """Names of the workspaces on which the user holds one of the grants, narrowed to the chosen one."""
    held, chosen = workspaces_with(request, *grants), current_workspace(request)
    return {
        w.pk: w.name
        for w in workspace_choices(request)
        if w.pk in held and (chosen is None or w.pk == chosen.pk)
    }


def _copies(request: HttpRequest) -> list[ui.Record]:
    """Exported copies past their deadline, one row a workspace."""
    names = _mine(request, *ATTEST_GRANTS)
    if not names:
        return []
    href = f"{reverse('admin:observations_exportrecord_changelist')}?{urlencode({'state': 'overdue'})}"
    return [
        ui.Record(
            [
                ui.Mark("bad", "copies"),
                f"{_copies_words(found.copies)} past the deadline: nobody attested the deletion",
                names[found.workspace_id],
                ui.deadline(found.since),
                ui.ActionButton("Open exports", href, small=True, dialog=False),
            ]
        )
        for found in overdue_copies_by_workspace(list(names))
    ]


def _copies_words(copies: int) -> str:
    return "1 exported copy" if copies == 1 else f"{ui.count(copies)} exported copies"


def _reviews(request: HttpRequest) -> list[ui.Record]:
    """Retention reviews that are due within a week, or overdue, where the user may hold them."""
    names = _mine(request, reviews.GRANT)
    if not names:
        return []
    now, rows = clock.now(), []
    href = reverse("admin:operations_retentionreview_decide")
    for subject in reviews.subjects():
        due = reviews.due_by_workspace(subject, list(names))
        for workspace_id, at in sorted(due.items(), key=lambda item: item[1]):
            if at > now + REVIEW_SOON:
                continue
            overdue = at <= now
            rows.append(
                ui.Record(
                    [
                        ui.Mark("bad" if overdue else "warn", "review"),
                        f"Retention review of {subject} {'is overdue' if overdue else 'falls due'}",
                        names[workspace_id],
                        ui.deadline(at),
                        ui.ActionButton("Start review", href, small=True),
                    ]
                )
            )
    return rows
