"""Staff pages of the journal."""

from apps.observations.admin import activation, enrolments, exports, kill_switches, observations
from apps.observations.admin.words import AGES, ALARMS, REVIEWED
from apps.observations.services.reviews import SUBJECT
from apps.operations.admin import alarms, reviews

alarms.register_words(ALARMS)
for group, words in REVIEWED.items():
    reviews.register_words(SUBJECT, group, words)
reviews.register_bands(SUBJECT, "journal", "Useful cases by their age", AGES)

__all__ = ["activation", "enrolments", "exports", "kill_switches", "observations"]
