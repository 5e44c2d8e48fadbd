"""Row security of the graph, its foreign keys between owned rows, and the digest of a corpus.

Postings and terms carry no foreign key: a check a row would cost more than the row. Their owner is fixed by the
row policy, they are written and removed with their node, and the nightly check recounts them.
"""

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, AddTrigger, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import OwnerPolicy

READ = OwnerPolicy(staff=("view_traces", "curate"), shared=True)
BULK = OwnerPolicy(shared=True)

# What of a node, beside its id, can change an answer. Counters of reading are left out on purpose.
CONTENT = """hash_record_extended(ROW({row}.id, {row}.digest, {row}.label, {row}.scope, {row}.project,
    {row}.conversation, {row}.language, {row}.durability, {row}.reach, {row}.asserted_by, {row}.epistemic,
    {row}.confidence, {row}.weight, {row}.useful_count, {row}.unhelpful_count, {row}.pinned, {row}.accessed_at,
    {row}.superseded_at, {row}.stale_at, {row}.archived_at, {row}.event_at, {row}.valid_from, {row}.valid_to,
    {row}.updated_at), 0)"""


def hashes(*sources: tuple[str, str]) -> str:
    """SQL: one (owner, kind of corpus, hash) a corpus, of the rows of the transition tables."""
    rows = " UNION ALL ".join(
        f"SELECT {alias}.principal_id, {alias}.kind, {CONTENT.format(row=alias)} AS hash FROM {table} {alias}"
        for table, alias in sources
    )
    return f"""
  SELECT changed.principal_id AS owner,
         CASE changed.kind WHEN 'episodic' THEN 1 WHEN 'structural' THEN 2 ELSE 3 END AS kind,
         bit_xor(changed.hash) AS hash
  FROM ({rows}) changed GROUP BY 1, 2 HAVING bit_xor(changed.hash) <> 0"""


ADDED = f"""
BEGIN
  INSERT INTO public.graph_corpus AS corpus (principal_id, kind, revision, content)
  SELECT found.owner, found.kind, 1, found.hash FROM ({hashes(("new_rows", "added"))} ORDER BY 1, 2) found
  ON CONFLICT (principal_id, kind) DO UPDATE
  SET revision = corpus.revision + 1, content = corpus.content # excluded.content;
  RETURN NULL;
END"""


def folded(*sources: tuple[str, str]) -> str:
    """Body of a statement trigger on rows that leave or change. It makes no corpus: an erasure may be under way."""
    return f"""
BEGIN
  UPDATE public.graph_corpus corpus
  SET revision = corpus.revision + 1, content = corpus.content # found.hash
  FROM ({hashes(*sources)}) found
  WHERE corpus.principal_id = found.owner AND corpus.kind = found.kind;
  RETURN NULL;
END"""


def revised(table: str) -> str:
    """Body of a statement trigger on rows beside a passage: the corpus is another one now."""
    return f"""
BEGIN
  UPDATE public.graph_corpus corpus SET revision = corpus.revision + 1
  WHERE (corpus.principal_id, corpus.kind) IN (
    SELECT node.principal_id, CASE node.kind WHEN 'episodic' THEN 1 WHEN 'structural' THEN 2 ELSE 3 END
    FROM {table} changed JOIN public.graph_node node ON node.id = changed.node_id);
  RETURN NULL;
END"""


def trigger_function(name: str, body: str) -> DefineFunction:
    return DefineFunction(
        name,
        "",
        "trigger",
        f"#variable_conflict use_column{body}",
        security_definer=False,
        language="plpgsql",
    )


CORPUS_TRIGGERS = [
    trigger_function("graph_node_added", ADDED),
    trigger_function("graph_node_removed", folded(("old_rows", "gone"))),
    trigger_function("graph_node_changed", folded(("new_rows", "added"), ("old_rows", "gone"))),
    trigger_function("graph_passage_changed", revised("new_rows")),
    AddTrigger(
        "graph", "Node", "graph_node_added", "AFTER INSERT", "graph_node_added", "STATEMENT",
        referencing="NEW TABLE AS new_rows",
    ),
    AddTrigger(
        "graph", "Node", "graph_node_removed", "AFTER DELETE", "graph_node_removed", "STATEMENT",
        referencing="OLD TABLE AS old_rows",
    ),
    AddTrigger(
        "graph", "Node", "graph_node_changed", "AFTER UPDATE", "graph_node_changed", "STATEMENT",
        referencing="OLD TABLE AS old_rows NEW TABLE AS new_rows",
    ),
    AddTrigger(
        "graph", "Passage", "graph_passage_changed", "AFTER UPDATE", "graph_passage_changed", "STATEMENT",
        referencing="NEW TABLE AS new_rows",
    ),
    AddTrigger(
        "graph", "Vector", "graph_vector_added", "AFTER INSERT", "graph_passage_changed", "STATEMENT",
        referencing="NEW TABLE AS new_rows",
    ),
    AddTrigger(
        "graph", "Vector", "graph_vector_changed", "AFTER UPDATE", "graph_passage_changed", "STATEMENT",
        referencing="NEW TABLE AS new_rows",
    ),
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_row_policies_and_functions"),
        ("graph", "0001_nodes_passages_and_indexes"),
    ]

    operations = [
        ApplyRowPolicy("graph", "Node", READ),
        ApplyRowPolicy("graph", "Passage", READ),
        ApplyRowPolicy("graph", "PageEdge", READ),
        ApplyRowPolicy("graph", "Entity", BULK),
        ApplyRowPolicy("graph", "Path", BULK),
        ApplyRowPolicy("graph", "Corpus", BULK),
        ApplyRowPolicy("graph", "Vector", BULK),
        ApplyRowPolicy("graph", "Term", BULK, bind_owner=False),
        ApplyRowPolicy("graph", "Posting", BULK, bind_owner=False),
        AddOwnerForeignKey("graph", "Node", "superseded_by", "graph.Node", on_delete="SET NULL"),
        AddOwnerForeignKey("graph", "Passage", "node", "graph.Node"),
        AddOwnerForeignKey("graph", "Entity", "node", "graph.Node"),
        AddOwnerForeignKey("graph", "Path", "node", "graph.Node"),
        AddOwnerForeignKey("graph", "Vector", "node", "graph.Node"),
        migrations.RunSQL(
            "ALTER TABLE graph_node ADD CONSTRAINT graph_node_label_nfc CHECK (label IS NFC NORMALIZED)",
            "ALTER TABLE graph_node DROP CONSTRAINT graph_node_label_nfc",
        ),
        # The lexical channel reads nothing but this index.
        migrations.RunSQL(
            "ALTER TABLE graph_posting DROP CONSTRAINT graph_posting_pkey, "
            "ADD PRIMARY KEY (principal_id, term_no, node_no) INCLUDE (tf, len)",
            "ALTER TABLE graph_posting DROP CONSTRAINT graph_posting_pkey, "
            "ADD PRIMARY KEY (principal_id, term_no, node_no)",
        ),
        # Document frequencies change with every document: room for them on the page of the row.
        migrations.RunSQL(
            "ALTER TABLE graph_term SET (fillfactor = 80)", "ALTER TABLE graph_term RESET (fillfactor)"
        ),
        migrations.RunSQL(
            "ALTER TABLE graph_vector ALTER COLUMN vec SET STORAGE PLAIN",
            "ALTER TABLE graph_vector ALTER COLUMN vec SET STORAGE EXTERNAL",
        ),
        *CORPUS_TRIGGERS,
    ]
