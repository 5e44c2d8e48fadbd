"""Native receipts, written as answers are recorded."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from django.db import connection

from apps.core.db.cursors import Question, Rows, ask, session_cursor
from apps.core.db.sessions import current_principal
from apps.core.db.wire import floats, nullable_floats, smallints, uuids
from apps.retrieval.exceptions import UnknownReceipt
from apps.retrieval.receipts.arrays import arrays_of
from apps.retrieval.receipts.document import NewReceipt, document_of
from apps.retrieval.receipts.writing import dumps

HASH_KEY: LiteralString = "SELECT hash_key FROM accounts_principal WHERE id = %s"


@dataclass(frozen=True, slots=True)
class PreparedReceipt:
    """A receipt as it will be stored, without the texts that it was made of."""

    id: UUID
    values: dict[str, Any]

    @property
    def document(self) -> bytes:
        """Its canonical bytes."""
        return str(self.values["document"]).encode()

    @property
    def checksum(self) -> str:
        return str(self.values["checksum"])


def save_receipt(*, new: NewReceipt) -> UUID:
    """Store the receipt of a retrieval in the session of its principal; its id. One statement writes it.

    A receipt of a trace is written after the trace, in the same transaction. Raises DatabaseError.
    """
    ask(writing_receipt(new=new, key=hash_key()))
    return new.id


def writing_receipt(*, new: NewReceipt, key: bytes) -> Question[None]:
    """The one statement that writes a receipt, to be sent after that of its trace, in the session of its principal,
    whose `hash_key` is `key`."""
    return Question(INSERT, prepare_receipt(new=new, key=key).values, lambda rows: None)


def prepare_receipt(*, new: NewReceipt, key: bytes) -> PreparedReceipt:
    """The receipt of a retrieval of the session's principal, whose `hash_key` is `key`."""
    return PreparedReceipt(new.id, _values(new, document_of(new, key)))


def store_receipts(*, receipts: Sequence[PreparedReceipt]) -> None:
    """Store many in the session of their principal, sent as one. Raises DatabaseError."""
    with connection.wrap_database_errors:
        session_cursor().executemany(INSERT, [one.values for one in receipts])


def hash_key() -> bytes:
    """The key under which texts of the session's principal are hashed. Raises UnknownReceipt, DatabaseError."""
    asked = key_of(current_principal().principal_id)
    ask(asked)
    return asked.answer


def key_of(principal_id: UUID) -> Question[bytes]:
    """The same, to be asked together with other things. The answer raises UnknownReceipt."""
    return Question(HASH_KEY, [principal_id], _key)


def _key(rows: Rows) -> bytes:
    if not rows:
        raise UnknownReceipt
    return bytes(rows[0][0])


def _values(new: NewReceipt, document: dict[str, Any]) -> dict[str, Any]:
    owner = current_principal()
    text, arrays = dumps(document), arrays_of(document)
    return {
        "w": owner.workspace_id,
        "p": owner.principal_id,
        "id": new.id,
        "trace": new.trace_id,
        "recorded_at": new.recorded_at,
        "mode": new.mode,
        "contract": document["features"]["contract"],
        "formula": document["policy"]["formula"],
        "policy": new.retrieval.policy.id,
        "scopes": document["request"]["scopes"],
        "query_identity": document["request"]["query_identity"],
        "profile": new.profile.id,
        "profile_status": new.profile.status,
        "document": text.decode(),
        "checksum": hashlib.sha256(text).hexdigest(),
        "node_ids": uuids(arrays.node_ids),
        "scores": floats(arrays.scores),
        "features": floats(arrays.features),
        "raw": nullable_floats(arrays.raw),
        "channels": smallints(arrays.channels),
        "weight_rows": smallints(arrays.weight_rows),
        "weights": floats(arrays.weights),
        "step_rows": smallints(arrays.step_rows),
        "step_kinds": arrays.step_kinds,
        "step_values": floats(arrays.step_values),
    }


INSERT: LiteralString = """
INSERT INTO retrieval_receipt (id, workspace_id, principal_id, trace_id, recorded_at, mode, contract, formula,
  policy_id, scopes, query_identity, profile_id, profile_status, document, checksum, node_ids, scores, features,
  raw, channels, weight_rows, weights, step_rows, step_kinds, step_values)
VALUES (%(id)s, %(w)s, %(p)s, %(trace)s, %(recorded_at)s, %(mode)s, %(contract)s, %(formula)s,
  %(policy)s, %(scopes)s::text[], %(query_identity)s, %(profile)s, %(profile_status)s, %(document)s, %(checksum)s,
  %(node_ids)s::uuid[], %(scores)s::float8[], %(features)s::float8[], %(raw)s::float8[], %(channels)s::int2[],
  %(weight_rows)s::int2[], %(weights)s::float8[], %(step_rows)s::int2[], %(step_kinds)s::text[],
  %(step_values)s::float8[])
"""
