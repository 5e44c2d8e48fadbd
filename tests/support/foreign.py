"""How to make an object of somebody else for each route that names one by id.

A route with a path parameter stands in MAKERS (by its url name) or in NO_OWNER with the reason; the walking test
fails for one that is in neither. A maker gets the world whose object it makes, and gives the path's values.
"""

from collections.abc import Callable
from typing import Any

from apps.core.db.sessions import principal_session
from tests.support.factories import World

Maker = Callable[[World], dict[str, Any]]

MAKERS: dict[str, Maker] = {}
NO_OWNER: dict[str, str] = {}
# A well-formed body for routes that read the body before the object.
BODIES: dict[str, dict[str, Any]] = {}


def foreign(name: str) -> Callable[[Maker], Maker]:
    """Register the maker of a route."""

    def register(maker: Maker) -> Maker:
        MAKERS[name] = maker
        return maker

    return register


@foreign("trace")
@foreign("trace-uses")
@foreign("trace-outcomes")
def a_trace(world: World) -> dict[str, Any]:
    from tests.support import traces

    with principal_session(world.principal):
        return {"trace_id": traces.save([traces.ranked(traces.issue(1))]).id}


@foreign("receipt")
@foreign("receipt-replay")
def a_receipt(world: World) -> dict[str, Any]:
    from tests.support import library

    return {"receipt_id": library.ask(world.principal, "billing")["retrieval_receipt_id"]}


SOURCE = "0" * 64
BODIES["trace-uses"] = {"idempotency_key": "k", "uses": [{"source_id": SOURCE, "stage": "selected"}]}
BODIES["trace-outcomes"] = {"idempotency_key": "k", "outcome": "success", "confirmation": "manual"}


@foreign("observation")
def an_observation(world: World) -> dict[str, Any]:
    from django.db import connection

    from tests.support import journal

    with principal_session(world.principal), connection.cursor() as cursor:
        return {"observation_id": journal.record(cursor, world.principal)}


@foreign("observations-erasure-certificate")
def a_certificate_of_the_journal(world: World) -> dict[str, Any]:
    from apps.observations.services import erasure

    with principal_session(world.principal):
        return {"certificate_id": erasure.begin()}
