"""Logs: JSON lines with an allow-list of fields."""

from memory_platform.environment import environment
from memory_platform.logging import configure_structlog, logging_config

configure_structlog()
LOGGING = logging_config(environment().log_level)
