"""Which groups train and which validate.

A fixed threshold on a hash, not a share of a list: a group never moves, whatever is added beside it.
"""

import hashlib


def split_position(seed: int, group_id: str) -> float:
    """Position of a group in [0, 1): SHA-256 of `seed:group` as a fraction."""
    return int(hashlib.sha256(f"{seed}:{group_id}".encode()).hexdigest(), 16) / 2**256


def is_validation(seed: int, group_id: str, validation_fraction: float) -> bool:
    """Whether the group validates instead of training."""
    return split_position(seed, group_id) < validation_fraction
