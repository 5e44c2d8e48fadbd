"""The one table of text patterns, with its three uses.

A row is found by *filter* (F, refuses the text), *redaction* (R, replaces what matches) or *lint* (L, points
at it). Everything here runs in linear time: repetitions are possessive or bounded, what follows them cannot
overlap with them, and a candidate is consumed before a function judges it. Redaction twice must equal
redaction once, so a redacting form never looks past its own match for anything that another replacement
could change; read `redact.py` before adding one.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Flag

REDACTED = "[redacted]"


class Use(Flag):
    FILTER = 1
    REDACT = 2
    LINT = 4


F, R, L = Use.FILTER, Use.REDACT, Use.LINT


def _always(_: re.Match[str]) -> bool:
    return True


@dataclass(frozen=True)
class Form:
    """One shape of a row. `replacement` is a template of `re.Match.expand`, used by redaction alone."""

    regex: re.Pattern[str]
    uses: Use
    accepts: Callable[[re.Match[str]], bool] = _always
    replacement: str = REDACTED

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Accepted matches from left to right, not overlapping."""
        return (match for match in self.regex.finditer(text) if self.accepts(match))


@dataclass(frozen=True)
class Pattern:
    """One row of the table; `number` is what a refusal names."""

    number: int
    name: str
    forms: tuple[Form, ...]

    def forms_for(self, use: Use) -> tuple[Form, ...]:
        return tuple(form for form in self.forms if use in form.uses)


def _form(
    regex: str,
    uses: Use,
    accepts: Callable[[re.Match[str]], bool] = _always,
    replacement: str = REDACTED,
    flags: int = 0,
) -> Form:
    return Form(re.compile(regex, flags), uses, accepts, replacement)


# --- 1: authorization header -------------------------------------------------------------------------

_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
_KNOWN_SCHEMES = frozenset(
    {"basic", "bearer", "digest", "dpop", "hoba", "mutual", "negotiate", "ntlm", "token", "apikey", "api-key"}
    | {"vapid", "oauth", "signature", "key"}
)


def _looks_random(token: str) -> bool:
    """Tells a token from a word of prose: long, or with a digit or an inner capital."""
    return len(token) >= 16 or (
        len(token) >= 6 and bool(re.search(r"[0-9]", token) or _INNER_CAPITAL.search(token))
    )


def _is_header(match: re.Match[str]) -> bool:
    scheme = (match["scheme"] or "").strip()
    return scheme.lower() in _KNOWN_SCHEMES or len(scheme) >= 16 or _looks_random(match["value"])


_PARAMETER = r"[^\s,\"'\\=]++(?:=++(?:\"[^\"\n]*+\"|[^\s,\"'\\]*+))?+"
AUTHORIZATION = (
    _form(
        r"(?P<name>authorization\\{0,4}[\"'`]?[ \t]{0,8}[:=][ \t]{0,8}\\{0,4}[\"'`]?)"
        rf"(?P<scheme>[a-z-]{{2,64}}+[ \t]{{1,8}}+)?+(?P<value>{_PARAMETER}(?:,[ \t]*+{_PARAMETER})*+)",
        R,
        _is_header,
        rf"\g<name>{REDACTED}",
        re.IGNORECASE,
    ),
)

# --- 2: private keys ---------------------------------------------------------------------------------

_PEM_HEADER = r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
PEM = (
    _form(_PEM_HEADER, F | L, flags=re.IGNORECASE),
    # A key that was cut off has no END: then all up to the next five hyphens, or the end, is its body.
    _form(_PEM_HEADER + r"(?:[^-]|-(?!----))*+(?:-----END [A-Z0-9 ]{1,80}-----)?+", R, flags=re.IGNORECASE),
)

# --- 3: bearer tokens --------------------------------------------------------------------------------


_BEARER = r"(?<![A-Za-z0-9])(?P<name>bearer[\"'`]?[\s:=]{1,8}[\"'`]?)(?P<token>[A-Za-z0-9._~+/=-]{6,}+)"
_AFTER_BEARER = frozenset(
    {"authentication", "authorisation", "authorization", "certificate", "certificates", "credential"}
    | {"credentials", "access-token", "instrument", "instruments", "security"}
)


def _is_bearer_token(match: re.Match[str]) -> bool:
    """Redaction leaves prose alone: a token is random, or has three parts."""
    return _looks_random(match["token"]) or bool(re.search(r"\w\.\w{1,256}\.\w", match["token"]))


def _may_be_bearer_token(match: re.Match[str]) -> bool:
    """Refusing costs little, so any word of eight characters that is not usual after `bearer` counts."""
    word = match["token"].rstrip(".").lower()
    return word not in _AFTER_BEARER and (len(word) >= 8 or _is_bearer_token(match))


BEARER = (
    _form(_BEARER, F | L, _may_be_bearer_token, flags=re.IGNORECASE),
    _form(_BEARER, R, _is_bearer_token, rf"\g<name>{REDACTED}", re.IGNORECASE),
)

# --- 4: assigned credentials -------------------------------------------------------------------------

_SCHEMES = r"(?:mongodb|postgres(?:ql)?|mysql|redis|http)(?:\+[a-z0-9]{1,16}|s)?"
_URL_START = re.compile(_SCHEMES + r"://\Z", re.IGNORECASE)
_ASSIGNED_NAME = (
    r"(?:password|passwd|secret(?:[ _-]?(?:access[ _-]?)?key)?|api[ _-]?key|token|пароль|токен)"
    r"\\{0,4}[\"'`*]{0,3}[ \t]{0,8}[:=]"
)


def _is_no_url_user(match: re.Match[str]) -> bool:
    """`https://token:…@host` is a URL with credentials, whose host is kept (8)."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    return not _URL_START.search(before)


ASSIGNED = (
    _form(_ASSIGNED_NAME, F | L, flags=re.IGNORECASE),
    _form(
        rf"(?P<name>{_ASSIGNED_NAME}[:=>]{{0,2}}[ \t]{{0,64}})"
        r"(?:(?P<quote>[\"'`])(?:(?!(?P=quote))[^\\\n]|\\.)++"
        r"|(?P<escaped>\\{1,4}[\"'`])(?:[^\"'`\\\n]|\\[^\"'`\n])++"
        r"|(?:[^\s\"'`,;&\\]|,(?!\s|\Z)|\\(?![\"'`]))++)",
        R,
        _is_no_url_user,
        rf"\g<name>\g<quote>\g<escaped>{REDACTED}",
        re.IGNORECASE,
    ),
)

# --- 5: vendor keys ----------------------------------------------------------------------------------

_START = r"(?<![A-Za-z0-9])"
_LONG_PART = re.compile(r"[A-Za-z0-9]{16}")


def _has_random_part(match: re.Match[str]) -> bool:
    """Tells `sk-…` from a hyphenated name such as sk-learn-extensions: a digit, or 16 characters in a row."""
    return bool(re.search(r"[0-9]", match[0])) or bool(_LONG_PART.search(match[0]))


VENDOR = (
    _form(_START + r"sk-[A-Za-z0-9_-]{12,}+", F | R | L, _has_random_part),
    _form(_START + r"pk-[A-Za-z0-9_-]{12,}+", R, _has_random_part),
    _form(_START + r"gh[po]_[A-Za-z0-9_]{10,}+", F | R | L),
    _form(_START + r"github_pat_[A-Za-z0-9_]{10,}+", F | R | L),
    _form(_START + r"xox(?:[abpr]|s|e(?:\.xox[bp])?)-[A-Za-z0-9-]{8,}+", F | R | L),
    _form(_START + r"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])", F | R | L),
    _form(_START + r"AIza[A-Za-z0-9_-]{35,}+", F | R | L),
    _form(r"(?<![0-9])[0-9]{8,}+:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", F | R | L),
    _form(r"(?<![A-Za-z0-9_-])[MN][A-Za-z0-9_-]{23}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+", F | R | L),
)

# --- 6: device codes ---------------------------------------------------------------------------------

_CODE = r"(?<![A-Za-z0-9-])[A-Z0-9]{4}-[A-Z0-9]{4,5}(?![A-Za-z0-9-])"
_CODE_NAME = (
    r"(?i:(?:device|user|one[ -]?time|verification|activation|pairing|log-?in|sign[ -]?in|authori[sz]ation)"
    r"[ _-]?code|(?:enter|type|paste|input)[^\n\[]{0,24}?code)"
)


def _mixes_letters_and_digits(match: re.Match[str]) -> bool:
    """A code standing alone must look random: PROJ-1234, 2025-2026 and READ-ONLY are no codes."""
    return all(re.search(r"[0-9]", half) and re.search(r"[A-Z]", half) for half in match[0].split("-"))


DEVICE_CODE = (
    _form(
        r"(?P<name>(?i:device[ _-]?code)\\{0,4}[\"'`]?[ \t]{0,8}[:=][ \t]{0,8}\\{0,4}[\"'`]?)"
        r"[A-Za-z0-9_-]{16,}+",
        R,
        replacement=rf"\g<name>{REDACTED}",
    ),
    # The gap may hold no bracket, so that it never leads across what was redacted before.
    _form(rf"(?P<name>{_CODE_NAME}[^\n\[]{{0,60}}?){_CODE}", R, replacement=rf"\g<name>{REDACTED}"),
    _form(_CODE, R, _mixes_letters_and_digits),
)

# --- 7: JSON web tokens ------------------------------------------------------------------------------

JWT = (
    _form(
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)*+",
        F | R | L,
    ),
)

# --- 8: URLs with credentials ------------------------------------------------------------------------

URL_CREDENTIALS = (
    _form(
        rf"(?P<name>{_SCHEMES}://)[^\s/?#:@\"'`<>]*+:[^\s/?#\"'`<>]*@",
        F | R | L,
        replacement=rf"\g<name>{REDACTED}@",
        flags=re.IGNORECASE,
    ),
)

# --- 9: insurance and bank account numbers -----------------------------------------------------------


def _is_account_number(match: re.Match[str]) -> bool:
    """Capitals are taken at their shape (mistyped ones are personal, too), others by the ISO 13616 check."""
    letters = re.sub(r"[ -]", "", match[0])
    if sum(character.isdigit() for character in letters[4:]) < 8:
        return False
    if letters.isupper():
        return True
    moved = (letters[4:] + letters[:4]).upper()
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


NATIONAL_NUMBERS = (
    _form(r"(?<!\d)\d{3}-\d{3}-\d{3}[ -]\d{2}(?!\d)", F | L),
    _form(
        r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])",
        F | L,
        _is_account_number,
        flags=re.IGNORECASE,
    ),
)

# --- 10: e-mail addresses and phone numbers ----------------------------------------------------------

_ISO_DATE = re.compile(r"(?:19|20)\d\d-[01]\d-[0-3]\d")


def _is_phone_like(match: re.Match[str]) -> bool:
    """At least ten digits beside ISO dates, which may stand in the same run."""
    return len(re.findall(r"\d", _ISO_DATE.sub(" ", match[0]))) >= 10


CONTACTS = (
    _form(r"(?<![\w.%+-])[\w.%+-]++@(?:[\w-]++\.)+[^\W\d_]{2,}+", F | L),
    _form(
        r"(?<![0-9A-Fa-f])\+?\(?\d(?:[ \t().\-‐‒–—−]{0,3}\d){9,}(?![0-9A-Fa-f])",
        F | L,
        _is_phone_like,
    ),
)

# --- 11: identifiers and network addresses -----------------------------------------------------------


def _is_ipv4(match: re.Match[str]) -> bool:
    return all(int(part) <= 255 for part in match[0].split("."))


def _is_ipv6(match: re.Match[str]) -> bool:
    """A valid address with at least three groups; `12:34:56` is none. A colon of the sentence may follow."""
    candidate = match[0]
    for text in (candidate, candidate[:-1]) if candidate.endswith(":") else (candidate,):
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            continue
        return len([group for group in text.split(":") if group]) >= 3
    return False


IDENTIFIERS = (
    _form(
        r"(?<![0-9A-Za-z])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9A-Za-z])",
        F | L,
        flags=re.IGNORECASE,
    ),
    _form(r"(?<![0-9])(?<![0-9]\.)(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?!\.?[0-9])", F | L, _is_ipv4),
    _form(r"(?<![0-9A-Za-z:])[0-9A-Fa-f:]{5,}+(?![0-9A-Za-z])", F | L, _is_ipv6),
)

# --- 12: digests -------------------------------------------------------------------------------------

DIGESTS = (
    _form(
        r"(?<![0-9A-Za-z])(?:[0-9a-f]{64}|[0-9a-f]{32})(?![0-9A-Za-z])",
        L,
        flags=re.IGNORECASE,
    ),
)

PATTERNS: tuple[Pattern, ...] = (
    Pattern(1, "authorization header", AUTHORIZATION),
    Pattern(2, "private key", PEM),
    Pattern(3, "bearer token", BEARER),
    Pattern(4, "assigned credential", ASSIGNED),
    Pattern(5, "vendor key", VENDOR),
    Pattern(6, "device code", DEVICE_CODE),
    Pattern(7, "JSON web token", JWT),
    Pattern(8, "URL with credentials", URL_CREDENTIALS),
    Pattern(9, "insurance or bank account number", NATIONAL_NUMBERS),
    Pattern(10, "e-mail address or phone number", CONTACTS),
    Pattern(11, "identifier or network address", IDENTIFIERS),
    Pattern(12, "digest", DIGESTS),
)


def table(use: Use) -> tuple[tuple[Pattern, tuple[Form, ...]], ...]:
    """The rows that have a form for this use, in the order of the table."""
    rows = ((pattern, pattern.forms_for(use)) for pattern in PATTERNS)
    return tuple((pattern, forms) for pattern, forms in rows if forms)
