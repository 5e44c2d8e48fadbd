"""The web server's address: the wished port, or the next that is free."""

import errno
import socket

TRIES = 100


def free_port(host: str, wished: int) -> int:
    """The first port from `wished` on that can be bound on `host`. Raises OSError when none can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in range(wished, min(wished + TRIES, 65536)):
        with socket.socket(family) as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((host, port))
            except OSError as error:
                if error.errno in (errno.EADDRINUSE, errno.EACCES):
                    continue
                raise
            return port
    raise OSError(errno.EADDRINUSE, f"no free port from {wished} on")


def reachable(host: str) -> str:
    """A host by which this machine reaches what listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound


def address(host: str, port: int) -> str:
    return f"http://{bracketed(reachable(host))}:{port}"


def bracketed(host: str) -> str:
    """As a URL and gunicorn want it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
