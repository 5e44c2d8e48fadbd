"""Parameters in PostgreSQL's binary form say what a list says."""

from uuid import UUID

import numpy as np
import pytest
from pgvector import HalfVector

from apps.core.db import wire
from apps.core.db.cursors import run

pytestmark = pytest.mark.django_db

IDS = [UUID(int=number) for number in (0, 1, 2**128 - 1)]
VALUES = [
    ("uuids", wire.uuids(IDS), "uuid[]", IDS),
    ("no uuids", wire.uuids([]), "uuid[]", []),
    ("floats", wire.floats([0.1, -0.0, 5e-324, 1.7e308, 3]), "float8[]", [0.1, -0.0, 5e-324, 1.7e308, 3.0]),
    ("no floats", wire.floats([]), "float8[]", []),
    ("nulls", wire.nullable_floats([1.5, None, 2, None]), "float8[]", [1.5, None, 2.0, None]),
    ("only nulls", wire.nullable_floats([None]), "float8[]", [None]),
    ("no nulls", wire.nullable_floats([1.5]), "float8[]", [1.5]),
    ("nothing", wire.nullable_floats([]), "float8[]", []),
    ("smallints", wire.smallints([-32768, 0, 32767]), "int2[]", [-32768, 0, 32767]),
]


@pytest.mark.parametrize(("value", "cast", "meant"), [v[1:] for v in VALUES], ids=[v[0] for v in VALUES])
def test_an_array_arrives_as_it_was(value, cast, meant) -> None:
    (arrived,) = run(f"SELECT %s::{cast}", [value]).fetchone()
    assert repr(arrived) == repr(meant)


def test_a_vector_is_rounded_as_pgvector_rounds_it() -> None:
    vector = np.random.default_rng(3).normal(size=384).astype(np.float32)
    sent = run("SELECT %s::halfvec(384)::text", [wire.halfvec(vector)]).fetchone()
    assert sent == run("SELECT %s::halfvec(384)::text", [HalfVector(vector).to_text()]).fetchone()
