"""Arrays of the database as NumPy columns, without a Python object for each of their values.

PostgreSQL sends an array as a header (dimensions, whether it has nulls, the type of its elements), for each
dimension a length and a lower bound, and then every element as its length and its bytes, all big-endian. Elements of
one fixed size without nulls are therefore records of one fixed size.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

_HEADER, _DIMENSION = 12, 8
_FLAGS = struct.Struct("!ii")
_TYPES = ("float8", "int2", "uuid")
FLOAT8 = np.dtype([("length", ">i4"), ("value", ">f8")])
INT2 = np.dtype([("length", ">i4"), ("value", ">i2")])
UUID16 = np.dtype([("length", ">i4"), ("value", ">u8", (2,))])


class _Elements(Loader):
    """The elements of a one-dimensional array as they were sent."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        dimensions, has_null = _FLAGS.unpack_from(data)
        if dimensions > 1 or has_null:
            raise psycopg.DataError("an array of one dimension without nulls is expected")
        return bytes(data[_HEADER + _DIMENSION :])


def load_elements(cursor: "psycopg.Cursor[Any]") -> None:
    """Make `cursor` give arrays of float8, int2 and uuid as the bytes that `flat` takes."""
    for name in _TYPES:
        info = cursor.adapters.types[name]
        cursor.adapters.register_loader(info.array_oid, _Elements)


def flat(parts: Sequence[bytes], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """All values of `parts`, one after the other, in the machine's own byte order."""
    column: npt.NDArray[Any] = np.frombuffer(b"".join(parts), dtype)["value"]
    return column.astype(column.dtype.newbyteorder("="))


def lengths(parts: Sequence[bytes], dtype: np.dtype[Any]) -> npt.NDArray[np.int64]:
    """How many values each part has."""
    return np.array([len(part) for part in parts], dtype=np.int64) // dtype.itemsize
