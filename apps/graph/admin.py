"""What the page of a principal says of its memory: how far its vectors have come."""

from collections.abc import Sequence

from django.http import HttpRequest

from apps.accounts.admin.principals import PrincipalAdmin
from apps.accounts.models import Principal
from apps.core import ui
from apps.core.access import holds
from apps.core.db.sessions import act_for
from apps.graph.selectors import vector_coverage

GRANT = "view_traces"


def vectors_of(request: HttpRequest, principal: Principal) -> Sequence[ui.Fact]:
    """`1 190 of 1 204 rows`; nothing for who may not see what is held."""
    if not holds(request, principal, GRANT):
        return []
    with act_for(principal.pk, GRANT):
        found = vector_coverage(principal.pk)
    if not found.model_id:
        return [ui.Fact("vectors", ui.nothing("no embedder is active"))]
    words = f"{ui.count(found.vectors)} of {ui.count(found.rows)} rows"
    value = words if found.vectors >= found.rows else ui.Mark("run", words)
    return [ui.Fact("vectors", value, hint=found.model_id)]


PrincipalAdmin.add_facts(vectors_of)
