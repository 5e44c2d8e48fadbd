"""The lexical index: postings, lexicon and statistics of an owner, always changed together.

The law: who calls this holds the owner's lock, and changes the node rows in the same transaction. COPY cannot
write below row security, so a group goes in as arrays.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from django.db import connection

from apps.graph.analyser import Analysed
from apps.graph.models.indexes import CorpusKind

# A fresh table has no statistics, and a join of two unknowns may then be planned as one loop inside the other.
# So nothing here joins: rows are named by `= ANY`, which an index answers, and amounts are looked up in a map.
_KNOWN = """
SELECT term, term_no FROM graph_term
WHERE principal_id = %s AND kind = %s AND term = ANY(%s::text[] COLLATE "C")
"""

_RAISE = """
UPDATE graph_term SET df = df + (%(amounts)s::jsonb ->> term_no::text)::int
WHERE principal_id = %(owner)s AND term_no = ANY(%(term_nos)s::int[])
"""

# Terms arrive in their order, so that two writers could never meet crosswise.
_ADD = """
INSERT INTO graph_term (principal_id, kind, term, term_no, df)
SELECT %(owner)s, %(kind)s, g.term, %(first)s + g.ordinal, g.df
FROM unnest(%(terms)s::text[], %(dfs)s::int[]) WITH ORDINALITY AS g(term, df, ordinal)
RETURNING term, term_no
"""

_POSTINGS = """
INSERT INTO graph_posting (principal_id, term_no, node_no, tf, len)
SELECT %(owner)s, p.term_no, p.node_no, p.tf, p.len
FROM unnest(%(term_nos)s::int[], %(node_nos)s::int[], %(tfs)s::int[], %(lens)s::int[])
  AS p(term_no, node_no, tf, len)
ORDER BY p.term_no, p.node_no
"""

_STATISTICS = """
INSERT INTO graph_corpus AS corpus (principal_id, kind, nodes, total_len, vectors, languages)
VALUES (%(owner)s, %(kind)s, %(nodes)s, %(length)s, %(vectors)s, %(languages)s::jsonb)
ON CONFLICT (principal_id, kind) DO UPDATE SET
  nodes = corpus.nodes + excluded.nodes,
  total_len = corpus.total_len + excluded.total_len,
  vectors = corpus.vectors + excluded.vectors,
  languages = (
    SELECT coalesce(jsonb_object_agg(name, total), '{}') FROM (
      SELECT name, sum(value::int) AS total FROM (
        SELECT * FROM jsonb_each_text(corpus.languages)
        UNION ALL SELECT * FROM jsonb_each_text(excluded.languages)) both_of(name, value)
      GROUP BY name HAVING sum(value::int) > 0) counted)
"""

_REMOVE = """
WITH gone AS (
  DELETE FROM graph_posting WHERE principal_id = %(owner)s AND node_no = ANY(%(node_nos)s::int[])
  RETURNING term_no, node_no, len)
SELECT (SELECT coalesce(jsonb_object_agg(term_no, -df), '{}')::text
        FROM (SELECT term_no, count(*) AS df FROM gone GROUP BY term_no) counted),
       (SELECT coalesce(sum(len), 0) FROM (SELECT DISTINCT node_no, len FROM gone) each_node)
"""

_REMOVE_VECTORS = """
WITH gone AS (
  DELETE FROM graph_vector WHERE principal_id = %s AND node_id = ANY(%s) RETURNING embedder_id, state)
SELECT count(*) FROM gone WHERE state = 'ready'
  AND embedder_id = (SELECT id FROM graph_embedder WHERE state = 'active')
"""


def index_nodes(owner: UUID, kind: CorpusKind, nodes: Sequence[tuple[int, Analysed]]) -> None:
    """Write the postings of new (node_no, analysed) rows and add them to the statistics."""
    if not nodes:
        return
    frequencies: Counter[str] = Counter()
    for _, analysed in nodes:
        frequencies.update(analysed.terms.keys())
    term_nos = _extend_lexicon(owner, kind, frequencies)
    _insert_postings(owner, nodes, term_nos)
    languages = Counter(analysed.language for _, analysed in nodes)
    change_statistics(
        owner, kind, nodes=len(nodes), length=sum(a.length for _, a in nodes), languages=languages
    )


def _extend_lexicon(owner: UUID, kind: CorpusKind, frequencies: Counter[str]) -> dict[str, int]:
    """The numbers of the terms, after their document frequencies were raised."""
    terms = sorted(frequencies)
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [owner, int(kind), terms])
        numbers: dict[str, int] = dict(cursor.fetchall())
        _change_frequencies(owner, {number: frequencies[term] for term, number in numbers.items()})
        new = [term for term in terms if term not in numbers]
        if new:
            cursor.execute(
                "SELECT coalesce(max(term_no), 0) FROM graph_term WHERE principal_id = %s", [owner]
            )
            values = {
                "owner": owner,
                "kind": int(kind),
                "first": cursor.fetchone()[0],
                "terms": new,
                "dfs": _array(frequencies[term] for term in new),
            }
            cursor.execute(_ADD, values)
            numbers.update(cursor.fetchall())
    return numbers


def _change_frequencies(owner: UUID, amounts: Mapping[int, int]) -> None:
    if not amounts:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _RAISE, {"owner": owner, "amounts": json.dumps(amounts), "term_nos": _array(sorted(amounts))}
        )


def _insert_postings(owner: UUID, nodes: Sequence[tuple[int, Analysed]], term_nos: dict[str, int]) -> None:
    columns: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    for node_no, analysed in nodes:
        count = len(analysed.terms)
        columns[0].extend(map(term_nos.__getitem__, analysed.terms))
        columns[1].extend([node_no] * count)
        columns[2].extend(analysed.terms.values())
        columns[3].extend([analysed.length] * count)
    names = ("term_nos", "node_nos", "tfs", "lens")
    with connection.cursor() as cursor:
        cursor.execute(
            _POSTINGS, {"owner": owner} | {n: _array(c) for n, c in zip(names, columns, strict=True)}
        )


def remove_nodes(owner: UUID, kind: CorpusKind, nodes: Sequence[tuple[UUID, int, str]]) -> None:
    """Take (id, node_no, language) rows out of both indexes, before they are deleted, archived, superseded."""
    if not nodes:
        return
    with connection.cursor() as cursor:
        cursor.execute(_REMOVE, {"owner": owner, "node_nos": _array(number for _, number, _ in nodes)})
        amounts, length = cursor.fetchone()
        touched = {int(number): amount for number, amount in json.loads(amounts).items()}
        _change_frequencies(owner, touched)
        cursor.execute(
            "DELETE FROM graph_term WHERE principal_id = %s AND term_no = ANY(%s::int[]) AND df <= 0",
            [owner, _array(touched)],
        )
        cursor.execute(_REMOVE_VECTORS, [owner, [node_id for node_id, _, _ in nodes]])
        vectors = cursor.fetchone()[0]
    languages = Counter({name: -count for name, count in Counter(name for _, _, name in nodes).items()})
    change_statistics(
        owner, kind, nodes=-len(nodes), length=-int(length), languages=languages, vectors=-vectors
    )


def change_statistics(
    owner: UUID,
    kind: CorpusKind,
    *,
    nodes: int = 0,
    length: int = 0,
    languages: Mapping[str, int] | None = None,
    vectors: int = 0,
) -> None:
    """Add to (or take from) the counts of a corpus."""
    with connection.cursor() as cursor:
        cursor.execute(
            _STATISTICS,
            {
                "owner": owner,
                "kind": int(kind),
                "nodes": nodes,
                "length": length,
                "languages": json.dumps(languages or {}),
                "vectors": vectors,
            },
        )


def _array(numbers: Iterable[int]) -> str:
    """An array literal. Ten times as fast as the driver's own way, which looks at every element's type."""
    return "{" + ",".join(map(str, numbers)) + "}"
