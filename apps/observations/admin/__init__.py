"""Staff pages of the journal."""

from apps.observations.admin import enrolments, kill_switches, observations

__all__ = ["enrolments", "kill_switches", "observations"]
