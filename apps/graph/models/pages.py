"""Links between pages of one repository."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from apps.core.models import OwnedModel

from .nodes import READ


class PageEdge(OwnedModel):
    """A link from one page's slug to another's. Learned strength is kept elsewhere, under the same names."""

    repo = models.CharField(max_length=300)
    src = models.CharField(max_length=256)
    dst = models.CharField(max_length=256)
    kind = models.CharField(max_length=24)
    label = models.CharField(max_length=64, null=True, blank=True)
    weight = models.FloatField(db_default=1.0)

    row_policy = READ
    retention: ClassVar[str] = "as long as both pages"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = ("id", "repo", "src", "dst", "kind", "label", "weight")

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(
                fields=["principal", "repo", "src", "dst", "kind"], name="graph_pageedge_key"
            ),
            models.CheckConstraint(name="graph_pageedge_no_loop", condition=~Q(src=F("dst"))),
        ]
        indexes = [models.Index(fields=["principal", "repo", "dst"], name="graph_pageedge_dst")]
