"""Staff pages of the journal."""

from apps.observations.admin import enrolments, exports, kill_switches, observations
from apps.observations.admin.words import ALARMS
from apps.operations.admin.alarms import register_words

register_words(ALARMS)

__all__ = ["enrolments", "exports", "kill_switches", "observations"]
