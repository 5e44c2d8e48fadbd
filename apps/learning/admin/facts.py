"""What the page of a principal says of its ranking, and alarms of learning in words."""

from django.utils.html import format_html_join

from apps.accounts.admin.principals import register_facts
from apps.accounts.models import Principal
from apps.core import ui
from apps.learning.admin.words import linked_profile
from apps.learning.alerts import INAPPLICABLE, REGRESSED
from apps.learning.models import Evaluation
from apps.learning.selectors.staff import active_of, open_proposals
from apps.learning.services.rechecks import FAILED
from apps.operations.admin.alarms import register_words


def ranking_facts(principal: Principal) -> list[ui.Fact]:
    """Active profiles by scope set, and what waits; nothing where nothing was ever learned."""
    active = active_of(principal.pk)
    waiting = open_proposals().filter(principal_id=principal.pk).count()
    found = []
    if active:
        shown = (("all scopes" if key == "*" else key, linked_profile(profile)) for key, profile, _ in active)
        found.append(ui.Fact("active profiles", format_html_join(", ", "{} {}", shown)))
    if waiting:
        words = f"{waiting} for a second person"
        found.append(ui.Fact("activations waiting", ui.Mark("run", words)))
    last = (
        Evaluation.objects.filter(principal_id=principal.pk)
        .order_by("-requested_at")
        .values_list("requested_at", flat=True)
        .first()
    )
    if last is not None:
        found.append(ui.Fact("last evaluation", ui.when(last)))
    return found


register_facts(ranking_facts)
register_words(
    {
        INAPPLICABLE: "is active and not applied, so that base scoring ranks",
        REGRESSED: "does worse than its baseline on what was judged since",
        FAILED: "could not be re-checked",
    }
)
