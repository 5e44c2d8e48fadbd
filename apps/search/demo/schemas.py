"""The file of the demo memory."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from apps.core.schemas import StrictModel

FILE = Path(__file__).parent / "memory.json"


class Told(StrictModel):
    """An outcome that the application reports of an answer, with the page that a mention brought in."""

    outcome: Literal["confirmed", "corrected"]
    reason: str


class Call(StrictModel):
    """A call of the application: what it asked, which sources it used, what came of it.

    `use` names identities; sources that an answer does not hold are passed over. A call with `told` also uses the
    first page that the graph axis reached by a path.
    """

    text: str = ""
    use: list[int | str] = []
    told: Told | None = None
    request: dict[str, Any] = {}


class DemoMemory(StrictModel):
    about: str
    items: list[dict[str, Any]]
    queries: list[Call]


@lru_cache
def demo_memory() -> DemoMemory:
    return DemoMemory.model_validate_json(FILE.read_bytes())
