"""Short arrays as the text that PostgreSQL reads, for statements that cast their parameters."""

from collections.abc import Iterable


def array(values: Iterable[int | float]) -> str:
    """An array of numbers (truth values, too), none of which needs quotes; ids and long ones go as `core.db.wire`.

    The driver looks at every element of a list for its type and for quotes, which a search would pay a hundred
    times. Floats are written with as many digits as give the same float again.
    """
    return "{" + ",".join(map(str, values)) + "}"
