"""The start page: is it healthy, and what needs me?

One query for each part, none over a large table as a whole. Each part fails alone: what cannot be read says so
in its place and the rest stands.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from apps.accounts.models import ApiToken
from apps.core import clock, ui
from apps.core.access import current_workspace, workspaces_with
from apps.core.admin.failing import part
from apps.learning.admin.words import short
from apps.learning.selectors.staff import coverage_of, open_proposals
from apps.operations.admin.alarms import in_words
from apps.operations.models import Alarm, Job, LegalHold
from apps.operations.rules import WATCHERS
from memory_platform.journal_needs import journal_needs
from memory_platform.promises import promises
from memory_platform.usage import usage

SHOWN = 12
TOKEN_SOON = timedelta(days=7)
WATCHED_FOR = 180


def start_page(request: HttpRequest) -> dict[str, Any]:
    """Context of `admin/index.html`, evaluated inside the session."""
    needs = part("needs", lambda: needs_you(request))
    return {
        "title": "Start",
        "needs": needs,
        "checked": part("checked", last_check),
        "usage": part("usage", lambda: usage(request)),
        "promises": part("promises", lambda: promises(request)),
        "standing": part("standing", lambda: standing(request)),
        "first_steps": first_steps(request),
    }


def needs_you(request: HttpRequest) -> ui.Records | None:
    """Open things that wait for a person, the worst first; None when there is none."""
    rows = [*_alarms(request), *journal_needs(request), *_activations(request), *_tokens(request)]
    if not rows:
        return None
    columns = [
        ui.Column("sign", hidden_label=True),
        ui.Column("what", "main"),
        ui.Column("where", later=True),
        ui.Column("since or until"),
        ui.Column("act", hidden_label=True),
    ]
    return ui.Records("What needs you", columns, rows[:SHOWN], header=1)


def _alarms(request: HttpRequest) -> list[ui.Record]:
    if not workspaces_with(request, *WATCHERS) and not getattr(request.user, "is_superuser", False):
        return []
    found = Alarm.objects.filter(resolved_at__isnull=True).select_related("workspace")
    workspace = current_workspace(request)
    if workspace is not None:
        found = found.filter(workspace_id=workspace.pk) | found.filter(workspace_id__isnull=True)
    rows = []
    for alarm in found.order_by("-opened_at", "-id")[:SHOWN]:
        href = reverse("admin:operations_alarm_change", args=[alarm.pk])
        taken = alarm.acknowledged_at is not None
        rows.append(
            ui.Record(
                [
                    ui.Mark("run", "taken up") if taken else ui.Mark("bad", "alarm"),
                    in_words(alarm),
                    alarm.workspace or "installation",
                    ui.when(alarm.opened_at, relative=True),
                    ui.ActionButton("Open alarm", href, small=True, dialog=False),
                ]
            )
        )
    return rows


def _activations(request: HttpRequest) -> list[ui.Record]:
    """Activations that wait for a second person, where the user may be one."""
    found = (
        open_proposals().filter(workspace_id__in=managed(request)).select_related("workspace", "proposed_by")
    )
    rows = []
    for proposal in found.order_by("valid_until", "id")[:SHOWN]:
        href = reverse("admin:learning_rankingprofile_change", args=[proposal.profile_id])
        own = proposal.proposed_by_id == request.user.pk
        who = ", which you proposed," if own else ""
        rows.append(
            ui.Record(
                [
                    ui.Mark("run", "activation"),
                    f"Activation of profile {short(proposal.profile_id)}{who} waits for a second person",
                    proposal.workspace,
                    ui.deadline(proposal.valid_until),
                    ui.ActionButton("Review", href, small=True, dialog=False),
                ]
            )
        )
    return rows


def managed(request: HttpRequest) -> list[UUID]:
    """Workspaces whose profiles the user manages, narrowed to the chosen one."""
    chosen = current_workspace(request)
    held = workspaces_with(request, "manage_profiles")
    return [pk for pk in held if chosen is None or pk == chosen.pk]


def _tokens(request: HttpRequest) -> list[ui.Record]:
    """Tokens that end within a week: the user's own, and of workspaces it operates."""
    now = clock.now()
    found = (
        ApiToken.objects.defer("secret_sha256", "principal__hash_key")
        .filter(revoked_at__isnull=True, expires_at__gt=now, expires_at__lte=now + TOKEN_SOON)
        .select_related("principal", "workspace")
        .order_by("expires_at")[:SHOWN]
    )
    rows = []
    for token in found:
        href = reverse("admin:accounts_apitoken_change", args=[token.pk])
        rows.append(
            ui.Record(
                [
                    ui.Mark("warn", "token ends"),
                    f"{token} of {token.principal or 'you'}",
                    token.workspace or "staff",
                    ui.deadline(token.expires_at),
                    ui.ActionButton("Open token", href, small=True, dialog=False),
                ]
            )
        )
    return rows


def last_check() -> Any:
    """When the watch last read everything; silence is only good news after a recent reading."""
    last = Job.objects.filter(name="operations.watch").values_list("last_success_at", flat=True).first()
    if last is None:
        return ui.Notice("warn", "Nothing has been checked yet: the watch has not run.")
    if (clock.now() - last).total_seconds() > WATCHED_FOR:
        return ui.Notice("bad", format_html("The last check is old: {}", ui.when(last, relative=True)))
    return format_html("Last check {}", ui.when(last, relative=True))


def standing(request: HttpRequest) -> ui.Facts:
    """What stands: open alarms, holds in place, active profiles, tokens in use."""
    now = clock.now()
    facts = [ui.Fact("open alarms", ui.count(Alarm.objects.filter(resolved_at__isnull=True).count()))]
    if workspaces_with(request, "review_retention", "audit"):
        facts.append(
            ui.Fact("holds in place", ui.count(LegalHold.objects.filter(released_at__isnull=True).count()))
        )
    if seen := workspaces_with(request, "view_traces"):
        chosen = current_workspace(request)
        ranking = coverage_of(pk for pk in seen if chosen is None or pk == chosen.pk)
        words = f"{ui.count(ranking.active)} of {ui.count(ranking.scope_sets)} scope sets"
        href = f"{reverse('admin:learning_rankingprofile_changelist')}?state=active"
        facts.append(ui.Fact("active profiles", format_html('<a href="{}">{}</a>', href, words)))
    tokens = ApiToken.objects.filter(
        revoked_at__isnull=True, last_used_at__gte=now - timedelta(days=1)
    ).count()
    facts.append(ui.Fact("tokens used in 24 h", ui.count(tokens)))
    return ui.Facts(facts)


def first_steps(request: HttpRequest) -> ui.EmptyState:
    """What to do before the first search: the call, with this installation's address."""
    base = request.build_absolute_uri("/v1/search")
    command = (
        "export TOKEN=mp_…\n"
        f'curl -sS {base} -H "Authorization: Bearer $TOKEN" \\\n'
        '  -H "Content-Type: application/json" -d \'{"query": "how do we rotate the signing keys"}\''
    )
    href = reverse("admin:accounts_principal_changelist")
    action = format_html('<a class="gv-button primary" href="{}">Make a token</a>', href)
    return ui.EmptyState(
        "No search yet.", "Searches come through the API, with a token of a principal.", action, command
    )
