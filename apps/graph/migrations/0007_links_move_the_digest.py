"""Links and entities lead to answers, so a change of them is another corpus, like one of the nodes."""

from django.db import migrations

from apps.core.db.operations import AddTrigger, DefineFunction

# An update alone: an erasure may be under way, and must not find a corpus made anew.
BODY = """
#variable_conflict use_column
BEGIN
  UPDATE public.graph_corpus corpus SET revision = corpus.revision + 1
  WHERE corpus.principal_id IN (SELECT changed.principal_id FROM changed);
  RETURN NULL;
END"""


def moves(model: str, name: str, event: str, table: str) -> AddTrigger:
    return AddTrigger(
        "graph",
        model,
        name,
        f"AFTER {event}",
        "graph_links_changed",
        "STATEMENT",
        referencing=f"{table} TABLE AS changed",
    )


class Migration(migrations.Migration):
    dependencies = [("graph", "0006_indexes_of_standing_nodes_and_pages")]

    operations = [
        DefineFunction(
            "graph_links_changed", "", "trigger", BODY, security_definer=False, language="plpgsql"
        ),
        moves("PageEdge", "graph_pageedge_added", "INSERT", "NEW"),
        moves("PageEdge", "graph_pageedge_changed", "UPDATE", "NEW"),
        moves("PageEdge", "graph_pageedge_removed", "DELETE", "OLD"),
        moves("Entity", "graph_entity_added", "INSERT", "NEW"),
        moves("Entity", "graph_entity_changed", "UPDATE", "NEW"),
        moves("Entity", "graph_entity_removed", "DELETE", "OLD"),
    ]
