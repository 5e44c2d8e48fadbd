"""The items of a run: who decides each, what its evidence is bound to, and how long it stays fresh."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from apps.observations.models.activation import Part

RELEASE, SCHEMA, ROLES, SETTINGS = "release", "schema_sha256", "roles_sha256", "settings_sha256"
ALL_BOUND: Final = (RELEASE, SCHEMA, ROLES, SETTINGS)
MACHINE, HUMAN = (Part.MACHINE,), (Part.HUMAN,)
BOTH = (Part.MACHINE, Part.HUMAN)
HALF_HOUR, QUARTER, HALF_YEAR = timedelta(minutes=30), timedelta(days=90), timedelta(days=180)


@dataclass(frozen=True, slots=True)
class Item:
    """`fresh`: how old its evidence may be, None for as long as what it is bound to. `needs`: numbers and codes
    that a posted pass has to show."""

    code: str
    parts: tuple[Part, ...]
    bound: tuple[str, ...] = ALL_BOUND
    fresh: timedelta | None = None
    needs: tuple[tuple[str, bool], ...] = ()

    @property
    def group(self) -> str:
        return self.code[0]

    @property
    def by_minutes(self) -> bool:
        """Evidence of a moment before enabling; while collection is on, the status of upkeep is watched instead."""
        return self.fresh == HALF_HOUR or self.code == "B1"


DISPOSABLE = (("disposable", True),)
_ALL = (
    Item(
        "A1", MACHINE, (RELEASE,), needs=(("clean_tree", True), ("equals_main", True), ("suites_green", True))
    ),
    Item("A2", MACHINE, (RELEASE, SCHEMA)),
    Item("A3", BOTH),
    Item("A4", BOTH),
    Item("A5", MACHINE, needs=DISPOSABLE),
    Item("B1", MACHINE),
    Item("B4", MACHINE, fresh=HALF_HOUR),
    Item("B5", MACHINE, fresh=HALF_HOUR),
    Item("B6", MACHINE, fresh=HALF_HOUR),
    Item("B7", BOTH, fresh=QUARTER, needs=DISPOSABLE),
    Item("B8", BOTH, fresh=QUARTER, needs=DISPOSABLE),
    Item("B9", BOTH, fresh=QUARTER, needs=DISPOSABLE),
    # Of the provider and of people, whatever the release.
    Item("B10", HUMAN, (), fresh=HALF_YEAR),
    Item("B11", HUMAN, (), fresh=HALF_YEAR),
    Item("C1", BOTH, ()),
    Item("C2", BOTH, ()),
    Item("C3", MACHINE, ()),
    Item("C4", MACHINE, ()),
    Item("D1", MACHINE, ()),
    Item("D2", BOTH, ()),
    Item("D3", MACHINE, ()),
    Item("D4", MACHINE, ()),
)
ITEMS: Final = {item.code: item for item in _ALL}


def of_groups(groups: str) -> tuple[Item, ...]:
    """Items whose code begins with one of the letters."""
    return tuple(item for item in _ALL if item.group in groups)
