"""Arrays as the text that PostgreSQL reads, for statements that cast their parameters."""

from collections.abc import Iterable
from uuid import UUID


def array(values: Iterable[UUID | int | float]) -> str:
    """An array of ids or numbers (truth values, too), none of which needs quotes.

    The driver looks at every element of a list for its type and for quotes, which a search would pay a thousand
    times. Floats are written with as many digits as give the same float again.
    """
    return "{" + ",".join(map(str, values)) + "}"
