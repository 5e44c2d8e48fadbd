"""Errors of the front door."""

from apps.core.problems import Unavailable


class RetrievalFailed(Unavailable):
    """No channel that was needed answered, or stored content could not be read."""

    title = "The memory could not be searched"
