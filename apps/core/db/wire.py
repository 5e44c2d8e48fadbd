"""Parameters in PostgreSQL's own binary form, for statements that say their type, as `%(ids)s::uuid[]` does.

The driver looks at every element of a list for its type, and writes a text that the server takes apart again; a search
would pay that a thousand times.
"""

import struct
from collections.abc import Iterable, Sequence
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_UUID_OID, _INT2_OID, _FLOAT8_OID = 2950, 21, 701
_EMPTY, _ARRAY, _VECTOR = struct.Struct("!iiI"), struct.Struct("!iiIii"), struct.Struct("!HH")
_UUID_LENGTH = struct.pack("!i", 16)
_FLOAT8 = np.dtype([("length", ">i4"), ("value", ">f8")])
_INT2 = np.dtype([("length", ">i4"), ("value", ">i2")])


class Wire(bytes):
    """A value as it is sent. Its type is the one that the statement casts it to."""


class _WireDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: Wire) -> bytes:
        return obj


def register() -> None:
    """Make every connection that is opened from now on take such values."""
    psycopg.adapters.register_dumper(Wire, _WireDumper)


def uuids(values: Iterable[UUID]) -> Wire:
    """For `uuid[]`."""
    elements = [value.bytes for value in values]
    if not elements:
        return Wire(_EMPTY.pack(0, 0, _UUID_OID))
    # Before each element stands its length.
    body = _UUID_LENGTH + _UUID_LENGTH.join(elements)
    return Wire(_ARRAY.pack(1, 0, _UUID_OID, len(elements), 1) + body)


def floats(values: Sequence[float]) -> Wire:
    """For `float8[]`: the same doubles."""
    return _numbers(values, _FLOAT8, _FLOAT8_OID)


def nullable_floats(values: Sequence[float | None]) -> Wire:
    """For `float8[]` with nulls; no value is NaN."""
    column = np.array(values, dtype=np.float64)
    absent = np.isnan(column)
    if not absent.any():
        return floats(column.tolist())
    elements = np.empty(len(column), _FLOAT8)
    elements["length"] = np.where(absent, -1, 8)
    elements["value"] = column
    octets = elements.view(np.uint8).reshape(len(column), -1)
    sent = np.ones(octets.shape, dtype=bool)
    sent[absent, 4:] = False  # of a null there is a length and nothing more
    return Wire(_ARRAY.pack(1, 1, _FLOAT8_OID, len(column), 1) + octets[sent].tobytes())


def smallints(values: Sequence[int]) -> Wire:
    """For `int2[]`."""
    return _numbers(values, _INT2, _INT2_OID)


def _numbers(values: Sequence[float], dtype: "np.dtype[np.void]", oid: int) -> Wire:
    count = len(values)
    if not count:
        return Wire(_EMPTY.pack(0, 0, oid))
    elements = np.empty(count, dtype)
    elements["length"] = dtype["value"].itemsize
    elements["value"] = values
    return Wire(_ARRAY.pack(1, 0, oid, count, 1) + elements.tobytes())


def halfvec(vector: npt.NDArray[np.floating]) -> Wire:
    """For `halfvec`: the vector in half precision, each value rounded to the nearest."""
    return Wire(_VECTOR.pack(len(vector), 0) + np.asarray(vector, dtype=">f2").tobytes())
