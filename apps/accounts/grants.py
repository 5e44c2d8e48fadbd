"""Grants that staff hold on a workspace, and the ready-made groups that bundle them."""

from typing import Final

GRANTS: Final[dict[str, str]] = {
    "view_traces": "See everything retrieved and learned, without text",
    "reveal_text": "Reveal raw text, with a reason",
    "curate": "Curate memory, labels and outcomes",
    "annotate": "Rate blind",
    "hold_keys": "Hold the keys of blind ratings",
    "review_retention": "Review retention, hold and erase",
    "manage_profiles": "Propose, approve and roll back ranking profiles",
    "operate_collection": "Operate collection, principals and tokens",
    "audit": "Read the audit trail",
}

# `annotate` and `hold_keys` are given to persons, so that rating and unblinding never come with a job title.
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Auditor": ("view_traces", "audit"),
    "Curator": ("view_traces", "reveal_text", "curate"),
    "Retention reviewer": ("view_traces", "reveal_text", "review_retention"),
    "Ranking manager": ("view_traces", "manage_profiles"),
    "Operator": ("operate_collection", "audit"),
}
