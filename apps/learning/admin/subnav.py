"""The row of links between what belongs to evaluations: they, holdouts, query sets."""

from typing import Any

from apps.learning.admin.words import page_url

LISTS = (
    ("learning_evaluation_changelist", "Evaluations"),
    ("learning_holdout_changelist", "Holdouts"),
    ("learning_queryset_changelist", "Query sets"),
)


def subnav(model_admin: Any) -> list[dict[str, Any]]:
    here = model_admin.url("changelist")
    return [
        {"title": title, "url": url, "here": url == here}
        for route, title in LISTS
        if (url := page_url(route))
    ]
