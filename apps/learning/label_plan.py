"""What to label next: the requests that would bring an evaluation what it lacks."""

import numpy as np

from apps.learning.receipt_set import ReceiptSet
from apps.learning.schemas import LabelPlan, LackingReason, LearningConfig, RequestToLabel
from apps.learning.selection import Selection
from apps.learning.split import is_validation

# A person's next sitting, not a backlog.
MAX_REQUESTS = 50


def label_plan(
    receipts: ReceiptSet,
    selection: Selection,
    groups: list[str],
    config: LearningConfig,
    *,
    num_training: int,
    num_validation: int,
) -> LabelPlan:
    """Groups lacking on each side, and eligible requests without a pair: the lacking side's first.

    `groups` is the group id of every receipt. A group that has pairs already comes last, since it would not
    add a group.
    """
    lacking = {
        False: max(0, config.min_training_queries - num_training),
        True: max(0, config.min_validation_queries - num_validation),
    }
    used = set(selection.receipts.tolist())
    used_groups = {groups[index] for index in used}
    positives, negatives, conflicts = _label_counts(receipts, selection)
    candidates = []
    for index in np.flatnonzero(selection.eligible).tolist():
        if index in used:
            continue
        validates = is_validation(config.seed, groups[index], config.validation_fraction)
        priority = (lacking[validates] == 0, groups[index] in used_groups, groups[index])
        request = RequestToLabel(
            request_id=receipts.request_ids[index],
            group_id=groups[index],
            split="validation" if validates else "train",
            reason=_reason(positives[index], negatives[index], conflicts[index]),
        )
        candidates.append((priority, request.request_id, request))
    candidates.sort(key=lambda item: item[:2])
    return LabelPlan(
        training_queries_lacking=lacking[False],
        validation_queries_lacking=lacking[True],
        requests=tuple(request for _, _, request in candidates[:MAX_REQUESTS]),
    )


def _label_counts(receipts: ReceiptSet, selection: Selection) -> tuple[list[int], list[int], list[int]]:
    owner, num = receipts.receipt_of_row, len(receipts)
    both = selection.has_true & selection.has_false
    positive, negative = selection.has_true & ~both, selection.has_false & ~both
    counts = (np.bincount(owner[rows], minlength=num).tolist() for rows in (positive, negative, both))
    positives, negatives, conflicts = counts
    return positives, negatives, conflicts


def _reason(positives: int, negatives: int, conflicts: int) -> LackingReason:
    if positives:
        return "only_relevant"
    if negatives:
        return "only_not_relevant"
    return "conflicting_labels" if conflicts else "unjudged"
