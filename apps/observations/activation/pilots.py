"""The probes of C and D2: searches through the front door, and what of them became durable.

A search is told from every other by its text, which is made for it, and found again by its fingerprint, so that what
others search meanwhile counts for nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from apps.accounts.models import Principal
from apps.core import policies
from apps.core.db.sessions import act_for, staff_session
from apps.core.ids import uuid7
from apps.observations.activation import front_door
from apps.observations.activation.front_door import Answer
from apps.observations.events import content_hash
from apps.observations.fingerprints import active_key, fingerprint
from apps.observations.models import ActivationRun, Enrolment, Observation, ObservationFeedback
from apps.observations.policy import KIND, collecting

SEARCH, FEEDBACK = "/v1/search", "/v1/observation-feedback"
OPERATES = "operate_collection"
META, OBSERVATION_ID = "_meta", "retrieval/observation_id"
HARMLESS = "What is kept here?"
"""What C2 asks where nobody gives another question."""
MOST_PILOTS = 3
"""How many of those who take part D2 asks for."""
OK, UNAUTHENTICATED = 200, 401
# Where proxies and frameworks put a name that somebody behind them may have made up.
FORGED = (
    "X-Principal",
    "X-Principal-Id",
    "X-User",
    "X-Remote-User",
    "X-Forwarded-User",
    "X-Auth-Request-User",
    "Remote-User",
)


@dataclass(frozen=True, slots=True)
class Found:
    passed: bool
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """For which run, on whose behalf, and what the pilot's search of C2 asks."""

    run: ActivationRun
    user_id: int
    query: str = HARMLESS


def enrolled(asked: Asked) -> list[UUID]:
    """Who takes part in the workspace of the run."""
    with staff_session(asked.user_id):
        rows = Enrolment.objects.filter(workspace_id=asked.run.workspace_id, withdrawn_at=None)
        return list(rows.order_by("enrolled_at", "id").values_list("principal_id", flat=True))


def pilot_row(asked: Asked) -> Found:
    """C2: the pilot searches, its record holds the very ranking that was returned and its whole life, and a citation of
    the first hit is recorded."""
    pilots = enrolled(asked)
    if len(pilots) != 1:
        return Found(False, {"enrolments": len(pilots)})
    (pilot,) = pilots
    with front_door.credential(pilot, asked.user_id, "search", "feedback") as headers:
        answer = front_door.post(SEARCH, {"query": asked.query, "corpus": "shared"}, headers)
        returned = answer.document.get("results", [])
        told = observation_of(answer)
        if told and returned:
            cited = {
                "observation_id": told,
                "hit_id": returned[0]["node_id"],
                "helpful": True,
                "cited": True,
            }
            front_door.post(FEEDBACK, cited, headers)
    values = {"status": answer.status, "returned": len(returned), "records": 0}
    if told:
        values |= _stored(asked, pilot, UUID(told), returned)
    sound = values.get("same_ranking") and values.get("whole_life") and values.get("cited_hits")
    return Found(bool(answer.status == OK and returned and sound), values)


def unlisted(asked: Asked) -> Found:
    """C3: a verified principal that takes no part is answered, and nothing of it is stored."""
    probe = front_door.probe_principal(asked.run.workspace_id, asked.user_id)
    query = _unique()
    answer = _search(probe, query, asked)
    values = {
        "status": answer.status,
        "ids_told": int(observation_of(answer) is not None),
        "stored": _found_again(query, [probe], asked),
    }
    return Found(answer.status == OK and not values["ids_told"] and not values["stored"], values)


def forged(asked: Asked) -> Found:
    """C4: headers that name the pilot admit nobody, be there no credential, a wrong one, or another's."""
    pilots = enrolled(asked)
    probe = front_door.probe_principal(asked.run.workspace_id, asked.user_id)
    query, body = _unique(), {"corpus": "shared"}
    names = _names(pilots[:1], asked)
    unproven: tuple[dict[str, str], ...] = (
        {},
        {"Authorization": "Basic cGlsb3Q6cGlsb3Q="},
        front_door.bearer("mp_" + "0" * 43),
    )
    refused = [front_door.post(SEARCH, body | {"query": query}, names | with_it) for with_it in unproven]
    answer = _search(probe, query, asked, names)
    values = {
        "refused": sum(each.status == UNAUTHENTICATED for each in refused),
        "status": answer.status,
        "ids_told": sum(observation_of(each) is not None for each in (*refused, answer)),
        "stored": _found_again(query, [*pilots, probe], asked),
        "pilots": len(pilots),
    }
    sound = values["refused"] == len(unproven) and answer.status == OK and pilots
    return Found(bool(sound and not values["ids_told"] and not values["stored"]), values)


def store_nothing(asked: Asked) -> Found:
    """D2: who would be observed if the mode were on searches, and nothing of it is stored."""
    probe = front_door.probe_principal(asked.run.workspace_id, asked.user_id)
    callers = [*enrolled(asked)[:MOST_PILOTS], probe]
    query = _unique()
    answers = [_search(caller, query, asked) for caller in callers]
    values = {
        "probes": len(callers),
        "answered": sum(answer.status == OK for answer in answers),
        "ids_told": sum(observation_of(answer) is not None for answer in answers),
        "stored": _found_again(query, callers, asked),
    }
    return Found(
        values["answered"] == len(callers) and not values["ids_told"] and not values["stored"], values
    )


def observation_of(answer: Answer) -> str | None:
    """The id under which an answer says that it is kept."""
    return (answer.document.get(META) or {}).get(OBSERVATION_ID)


def _search(caller: UUID, query: str, asked: Asked, more: Mapping[str, str] | None = None) -> Answer:
    with front_door.credential(caller, asked.user_id, "search") as headers:
        return front_door.post(SEARCH, {"query": query, "corpus": "shared"}, headers | dict(more or {}))


def _stored(
    asked: Asked, pilot: UUID, observation: UUID, returned: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What the record of the pilot's search holds, against what its answer held."""
    with staff_session(asked.user_id):
        ruling = collecting(policies.followed(asked.run.workspace_id, KIND).document)
        with act_for(pilot, OPERATES):
            row = Observation.objects.filter(pk=observation).first()
            cited = ObservationFeedback.objects.filter(
                observation_id=observation, cited=True, withdrawn_at=None
            ).count()
    if row is None:
        return {}
    kept = [(hit["id"], hit["rank"], hit["returnedContentHash"]) for hit in row.snapshot["hits"]]
    told = [(hit["node_id"], rank, content_hash(hit["content"])) for rank, hit in enumerate(returned, 1)]
    life = row.record_expires_at - row.observed_at
    return {
        "records": 1,
        "same_ranking": kept == told,
        "life_hours": life / timedelta(hours=1),
        "whole_life": life == timedelta(hours=ruling.record_hours),
        "cited_hits": cited,
    }


def _found_again(query: str, principals: Sequence[UUID], asked: Asked) -> int:
    """Records of this query of any of the principals."""
    key = active_key()
    if key is None:
        return 0  # no fingerprint can be made, and no record without one
    count = 0
    with staff_session(asked.user_id):
        for principal in principals:
            with act_for(principal, OPERATES):
                mark = fingerprint(key, str(principal), query)
                count += Observation.objects.filter(query_fingerprint=mark).count()
    return count


def _names(pilots: Sequence[UUID], asked: Asked) -> dict[str, str]:
    """Headers that claim to be the pilot, by its id and by its subject in turn."""
    with staff_session(asked.user_id):
        found = Principal.objects.filter(pk__in=pilots).values_list("pk", "subject")
        names = [str(name) for pair in found for name in pair]
    ascii_names = [name for name in names if name.isascii()]
    return (
        {header: ascii_names[at % len(ascii_names)] for at, header in enumerate(FORGED)}
        if ascii_names
        else {}
    )


def _unique() -> str:
    return f"{HARMLESS} {uuid7()}"
