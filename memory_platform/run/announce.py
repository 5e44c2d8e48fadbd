"""What `make run` prints once everything runs: where to look, how to sign in, what to try."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

ADMIN_NAME = "admin"
ADMIN_PASSWORD_FILE = "admin_password"
TOKEN_FILE = "api_token"


@dataclass(frozen=True, slots=True)
class Welcome:
    """`first` says whether the secrets are new: they are shown once and kept in `var`."""

    address: str
    var: Path
    first: bool

    def text(self) -> str:
        password, token = self.var / ADMIN_PASSWORD_FILE, self.var / TOKEN_FILE
        rows = [
            ("Admin", f"{self.address}/admin/"),
            ("Sign in", f"{ADMIN_NAME}, password {self._secret(password)}"),
            ("API", f"{self.address}/v1/ (described at {self.address}/v1/docs)"),
        ]
        if token.exists():
            rows.append(("Token", self._secret(token)))
        lines = [f"  {label:<8} {value}" for label, value in rows]
        if token.exists():
            lines += ["", "Try it:", "", *curl_lines(self.address, token)]
        return "\n".join(["", *lines, "", "Ctrl-C stops everything and keeps the data.", ""])

    def _secret(self, path: Path) -> str:
        if not path.exists():
            return "as set before"
        if self.first:
            return f"{path.read_text().strip()} (shown once; kept in {path})"
        return f"in {path}"


def curl_lines(address: str, token: Path) -> list[str]:
    """Remember something, find it again, and see the trace of the search. The token stays out of them."""
    credential = f'-H "Authorization: Bearer $(cat {shlex.quote(str(token))})"'
    body = "-H 'Content-Type: application/json' -d"
    note = {
        "items": [{"identity": "hello", "text": "The backup of the archive runs at four in the morning."}]
    }
    question = {"query": "When does the backup run?"}
    return [
        f"curl -sS {credential} {body} {shlex.quote(json.dumps(note))} {address}/v1/nodes:batch",
        f"curl -sS {credential} {body} {shlex.quote(json.dumps(question))} {address}/v1/search",
        f"curl -sS {credential} {address}/v1/traces",
    ]
