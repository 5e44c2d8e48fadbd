"""What can keep an embedded server from running. The text is for the person at the terminal."""


class EmbeddedError(Exception):
    """An embedded server cannot be used as asked."""


class WrongDataVersion(EmbeddedError):
    """The data folder was made by another major version of PostgreSQL."""


class StartFailed(EmbeddedError):
    """The server process ended, or did not answer in time."""
