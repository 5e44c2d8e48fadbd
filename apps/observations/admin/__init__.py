"""Staff pages of the journal."""

from apps.observations.admin import activation, enrolments, exports, kill_switches, observations
from apps.observations.admin.words import ALARMS
from apps.operations.admin.alarms import register_words

register_words(ALARMS)

__all__ = ["activation", "enrolments", "exports", "kill_switches", "observations"]
