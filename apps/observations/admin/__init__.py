"""Staff pages of the journal."""

from apps.observations.admin import activation, enrolments, kill_switches, observations

__all__ = ["activation", "enrolments", "kill_switches", "observations"]
