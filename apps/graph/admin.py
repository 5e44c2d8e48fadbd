"""What the page of a principal says of its memory: how far its vectors have come."""

from apps.accounts.admin.principals import register_facts
from apps.accounts.models import Principal
from apps.core import ui
from apps.graph.selectors import vector_progress


def vector_facts(principal: Principal) -> list[ui.Fact]:
    """`1 190 of 1 204 rows`; nothing for who may not see what is held."""
    found = vector_progress(principal.pk)
    if found is None:
        return []
    words = f"{ui.count(found.done)} of {ui.count(found.live)} rows"
    facts = [ui.Fact("vectors", words if found.done >= found.live else ui.Mark("run", words))]
    if found.failed:
        facts.append(ui.Fact("without a vector", ui.Mark("warn", f"{found.failed} failed")))
    return facts


register_facts(vector_facts)
