"""Staff pages of the journal."""

from apps.observations.admin import activation, enrolments, exports, kill_switches, observations
from apps.observations.admin.words import ALARMS, REVIEW
from apps.operations.admin import alarms, reviews

alarms.register_words(ALARMS)
reviews.register_words(REVIEW)

__all__ = ["activation", "enrolments", "exports", "kill_switches", "observations"]
