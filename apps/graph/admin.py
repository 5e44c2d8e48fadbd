"""What the graph shows on pages of other apps."""

from apps.accounts.admin.principals import register_facts
from apps.accounts.models import Principal
from apps.core import ui
from apps.graph.selectors import vector_progress


def vector_facts(principal: Principal) -> list[ui.Fact]:
    """How many rows a principal holds, and how far their vectors have come."""
    found = vector_progress(principal.pk)
    if found is None or not found.live:
        return []
    facts = [ui.Fact("rows of memory", ui.count(found.live)), ui.Fact("vectors", _words(found.share))]
    if found.waiting:
        facts.append(ui.Fact("waiting for a vector", ui.count(found.waiting)))
    if found.failed:
        facts.append(ui.Fact("without a vector", ui.Mark("warn", f"{found.failed} failed")))
    return facts


def _words(share: float) -> ui.Mark:
    # Rounded down, so that what is not complete never reads as 100 %.
    return ui.Mark("ok" if share >= 1 else "run", f"{int(share * 100)} % covered")


register_facts(vector_facts)
