"""What is to be done with a run that was switched off, in words for a page and for a terminal."""

from apps.observations.models.activation import RunState
from apps.observations.selectors.activation import OFF, RunStanding

PROVEN = (RunState.SHUTDOWN_VERIFIED, RunState.EMPTIED)


def remedy(standing: RunStanding) -> str:
    """Why it ended, as far as evidence says, and the way to another run. Empty for a run that is not off."""
    if standing.run.state not in OFF:
        return ""
    cause, mend = _cause(standing)
    proof = "Off is proven." if may_follow(standing) else "Prove that off is off with D1 and D2."
    again = f"{mend}, then open another run" if mend else "open another run"
    return f"{cause} This run does not go on. {proof} To collect again, {again}; its evidence is given anew."


def may_follow(standing: RunStanding) -> bool:
    """Whether another run of the workspace may be opened."""
    return standing.run.state in PROVEN


def _cause(standing: RunStanding) -> tuple[str, str]:
    """Why it is off, and what is to be mended for it."""
    failed = ", ".join(dict.fromkeys(line.item.code for line in standing.failed_pilot))
    if failed:
        return (
            f"The pilot failed at {failed}, and collection is off.",
            f"mend what the evidence of {failed} shows",
        )
    if standing.unproven:
        return (
            "The pilot did not pass C2 and C3 within 24 hours, and collection is off.",
            "see why nobody looked or attested",
        )
    return "Collection is off.", ""
