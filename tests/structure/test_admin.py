"""Walks every admin class: nothing changes on GET, nothing lacks a permission or a preview."""

from typing import Any

import pytest
from django.contrib import admin
from django.db.models import Field
from unfold.admin import ModelAdmin as UnfoldModelAdmin

from apps.core.admin import GovernedAction, ModelAdmin

REGISTERED = sorted(admin.site._registry.items(), key=lambda pair: pair[0]._meta.label)
ids = [model._meta.label for model, _ in REGISTERED]


def _actions() -> list[Any]:
    return [(model._meta.label, a) for model, cls in REGISTERED for a in getattr(cls, "governed", ())]


@pytest.mark.parametrize(("model", "model_admin"), REGISTERED, ids=ids)
def test_no_action_is_a_link_that_runs(model: Any, model_admin: Any) -> None:
    for name in ("actions_row", "actions_detail", "actions_list", "actions_submit_line"):
        assert not getattr(model_admin, name, ()), f"{model._meta.label} has {name}"
    assert not model_admin.actions


@pytest.mark.parametrize(("model", "model_admin"), REGISTERED, ids=ids)
def test_every_class_stands_on_our_base(model: Any, model_admin: Any) -> None:
    assert isinstance(model_admin, ModelAdmin)
    assert isinstance(model_admin, UnfoldModelAdmin)
    assert model_admin.grants_to_view() or model_admin.superuser_sees, "who may see it?"


@pytest.mark.parametrize(("model", "model_admin"), REGISTERED, ids=ids)
def test_every_list_has_a_keyset_that_ends_in_a_unique_column(model: Any, model_admin: Any) -> None:
    directions = {name.startswith("-") for name in model_admin.keyset}
    assert len(directions) == 1
    last = model._meta.get_field(model_admin.keyset[-1].lstrip("-"))
    assert isinstance(last, Field)
    assert last.unique
    assert not model_admin.date_hierarchy
    assert not model_admin.show_full_result_count
    assert not getattr(model_admin, "list_sections", ())


@pytest.mark.parametrize(("label", "action"), _actions())
def test_every_action_says_who_may_and_shows_before_it_acts(label: str, action: type[GovernedAction]) -> None:
    own_rule = action.permitted.__func__ is not GovernedAction.permitted.__func__  # type: ignore[attr-defined]
    assert action.grants or action.for_superusers or own_rule, f"{label} {action.name} names no grant"
    assert action.preview is not GovernedAction.preview
    assert action.act is not GovernedAction.act
    assert action.name
    assert action.path.endswith("/")


@pytest.mark.parametrize(("model", "model_admin"), REGISTERED, ids=ids)
def test_closed_columns_are_never_selected_or_exported(model: Any, model_admin: Any) -> None:
    closed = set(getattr(model, "raw_text", ()))
    from apps.core.admin.export import export_columns

    assert not closed & set(export_columns(model))
    assert closed <= set(model_admin.closed_columns())
