"""Bases of every owned model."""

from typing import Any, ClassVar

from django.db import models

from apps.core.db.rowpolicy import RowPolicy
from apps.core.ids import uuid7


class Declared(models.Model):
    """What every model of the platform says of itself; a structural test finds the one that does not."""

    row_policy: ClassVar[RowPolicy]
    raw_text: ClassVar[tuple[str, ...]] = ()
    retention: ClassVar[str]
    erasure: ClassVar[str]
    export_columns: ClassVar[tuple[str, ...]] = ()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"


class WorkspaceModel(Declared):
    """A row of a workspace as a whole."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey("accounts.Workspace", on_delete=models.PROTECT, related_name="+")

    class Meta:
        abstract = True


class OwnedModel(Declared):
    """A row of one principal. `ApplyRowPolicy` binds (workspace, principal) to the owner by a foreign key."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    principal: Any = models.ForeignKey(
        "accounts.Principal",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )

    class Meta:
        abstract = True
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["principal", "id"], name="%(app_label)s_%(class)s_owner_key")
        ]
