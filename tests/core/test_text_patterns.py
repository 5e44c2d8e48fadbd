"""The pattern table in its three uses: filter, redaction, lint."""

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.core.text import PATTERNS, REDACTED, lint, redact, refused_by
from apps.core.text.patterns import Use

PEM = "-----BEGIN {}PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq9\nZm9vYmFy+/==\n-----END {}PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpM"

# (row, sample, part that redaction must remove, part that it must keep)
FILTERED = [
    (2, PEM.format("", ""), "MIIEpAIBAAKCAQEA7bq9", ""),
    (2, PEM.format("RSA ", "RSA "), "Zm9vYmFy", ""),
    (2, PEM.format("OPENSSH ", "OPENSSH "), "Zm9vYmFy", ""),
    (2, PEM.format("ENCRYPTED ", "ENCRYPTED "), "Zm9vYmFy", ""),
    (3, "Bearer f81d4fae7dec11d0a765", "f81d4fae7dec11d0a765", "Bearer "),
    (3, "bearer abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwx", "bearer "),
    (3, "BEARER abc.def.ghi", "abc.def.ghi", "BEARER "),
    (4, "password: hunter2", "hunter2", "password"),
    (4, "passwd=hunter2", "hunter2", "passwd"),
    (4, "secret = hunter2", "hunter2", "secret"),
    (4, "api key: hunter2", "hunter2", "api key"),
    (4, "API_KEY=hunter2", "hunter2", "API_KEY"),
    (4, "apikey=hunter2", "hunter2", "apikey"),
    (4, "token=hunter2", "hunter2", "token"),
    (4, "пароль: тайна123", "тайна123", "пароль"),
    (4, "ТОКЕН = тайна123", "тайна123", "ТОКЕН"),
    (5, "sk-abcdefghijklmnop1234", "abcdefghijklmnop1234", ""),
    (5, "sk-proj-a1b2c3d4e5f6g7h8", "a1b2c3d4e5f6g7h8", ""),
    (5, "ghp_" + "a1B2" * 9, "a1B2a1B2", ""),
    (5, "gho_" + "a1B2" * 9, "a1B2a1B2", ""),
    (5, "github_pat_11ABCDEFG0abcdefghij_KLMNOP", "11ABCDEFG0", ""),
    (5, "xoxa-2-123456789012-abc", "123456789012", ""),
    (5, "xoxb-123456789012-abcdefGHIJ", "123456789012", ""),
    (5, "xoxp-123456789012-abcdefGHIJ", "123456789012", ""),
    (5, "xoxr-123456789012-abcdefGHIJ", "123456789012", ""),
    (5, "xoxs-123456789012-abcdefGHIJ", "123456789012", ""),
    (5, "xoxe-123456789012-abcdefGHIJ", "123456789012", ""),
    (5, "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE", ""),
    (5, "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY", "SyD-9tSrke72", ""),
    (5, "12345678:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"[:35], "AAHdqTcvCH1v", ""),
    (5, "M" + "TA1234567890abcdefghijk"[:23] + ".GabcdE." + "x" * 27, "GabcdE", ""),
    (5, "N" + "TA1234567890abcdefghijk"[:23] + ".GabcdE." + "x" * 38, "GabcdE", ""),
    (7, JWT, "eyJzdWIiOiIxMjM0In0", ""),
    (8, "mongodb://app:hunter2@db.example/x", "hunter2", "db.example/x"),
    (8, "mongodb+srv://app:hunter2@db.example/x", "hunter2", "mongodb+srv://"),
    (8, "postgres://app:hunter2@db.example:5432/x", "hunter2", "db.example:5432/x"),
    (8, "postgresql://app:p@ss@db.example/x", "p@ss", "db.example/x"),
    (8, "mysql://app:hunter2@db.example/x", "hunter2", "db.example/x"),
    (8, "redis://:hunter2@cache.example:6379/0", "hunter2", "cache.example:6379/0"),
    (8, "rediss://app:hunter2@cache.example", "hunter2", "cache.example"),
    (8, "http://app:hunter2@host.example/p?q=1", "hunter2", "host.example/p?q=1"),
    (8, "HTTPS://app:hunter2@host.example/p", "hunter2", "host.example/p"),
]
FILTERED_ONLY = [
    (9, "112-233-445 95"),
    (9, "DE89370400440532013000"),
    (9, "GB29 NWBK 6016 1331 9268 19"),
    (9, "de89370400440532013000"),
    (10, "jane.doe+x@mail.example.org"),
    (10, "иван@почта.рф"),
    (10, "+7 916 123-45-67"),
    (10, "8 (800) 555-35-35"),
    (10, "2025-03-01 8 916 123-45-67"),
    (11, "a50e8400-e29b-41d4-a716-44665544000f"),
    (11, "192.168.1.17"),
    (11, "2001:db8::1"),
    (11, "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
]
REDACTED_ONLY = [
    (1, "Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz", "Authorization: "),
    (1, 'Authorization: Digest username="M", realm="a b", nonce="dcd98b"', "dcd98b", "Authorization: "),
    (1, '{"authorization": "a1b2c3d4e5f6", "n": 1}', "a1b2c3d4e5f6", ', "n": 1}'),
    (1, "Proxy-Authorization: Own-Scheme a1b2c3d4e5f6 x", "a1b2c3d4e5f6", " x"),
    (5, "pk-abcdefghijklmnop1234", "abcdefghijklmnop1234", ""),
    (6, "Enter the code WDJB-MJHT at the site", "WDJB-MJHT", " at the site"),
    (6, "user code: PROJ-1234", "PROJ-1234", "user code: "),
    (6, "device_code=3584d83530557fdd1f46af8289938c8ef79f9dc5", "3584d835", "device_code="),
    (6, "then A1B2-C3D4 was shown", "A1B2-C3D4", " was shown"),
]
CLEAN = [
    "",
    "Commit 9fceb02d0ae598e95dc970b74767f19372d61af8 and abbreviated 9fceb02 fix it",
    "v1.2.3, 2.0.0rc1, >=3.11,<4 and django==5.2",
    "apps/core/text/patterns.py:12 and C:\\Users\\me and ../x/token.py and tests/password_reset/",
    "How do bearer tokens work, and what is bearer authentication?",
    "The secret of a good password is its length; max_tokens counts tokens.",
    "scikit's sk-learn-contrib-extensions and the pk-naming-rules-for-tables",
    "PROJ-1234 was READ-ONLY in 2025-2026, see UTF-16 and ISO-8601",
    "At 2026-11-30 01:49:32 and 12:34:56.789 it ran 3.14 s",
    "std::vector<int>::iterator, a::b::c, face::book",
    "authorization: see the docs",
    "https://example.org:8080/a@b?x=c and http://localhost:3000?mail=x",
    "Что такое роль?",
    "version AB12 SOME TEXT HERE TOO",
]


def full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else "\u3000" if c == " " else c for c in text)


def zero_width(text: str) -> str:
    return "\u200b".join(text)


def soft_hyphen(text: str) -> str:
    return "\u00ad\u2060".join(text)


def percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def disguised_percent(text: str) -> str:
    return quote(zero_width(full_width(text)))


DISGUISES = [str, full_width, zero_width, soft_hyphen, quote, percent, disguised_percent]


@pytest.mark.parametrize("disguise", DISGUISES, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("row", "sample"), [(row, sample) for row, sample, _, _ in FILTERED] + FILTERED_ONLY)
def test_filter_refuses_every_sample_in_every_form(row, sample, disguise):
    for text in (disguise(sample), f"see {disguise(sample)} there"):
        assert refused_by(text) is not None
        assert row in {finding.pattern for finding in lint(text)}
    if disguise is str:
        assert refused_by(sample) == row or refused_by(sample) < row


def test_every_filter_row_has_samples():
    rows = {pattern.number for pattern in PATTERNS if pattern.forms_for(Use.FILTER)}
    assert rows == {row for row, *_ in FILTERED} | {row for row, _ in FILTERED_ONLY}
    assert rows == {2, 3, 4, 5, 7, 8, 9, 10, 11}


def test_uses_of_the_rows():
    uses = {
        pattern.number: "".join(
            letter
            for letter, use in (("F", Use.FILTER), ("R", Use.REDACT), ("L", Use.LINT))
            if pattern.forms_for(use)
        )
        for pattern in PATTERNS
    }
    assert uses == {
        1: "R", 2: "FRL", 3: "FRL", 4: "FRL", 5: "FRL", 6: "R", 7: "FRL", 8: "FRL", 9: "FL", 10: "FL",
        11: "FL", 12: "L",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["d41d8cd98f00b204e9800998ecf8427e", "E3B0C44298FC1C14" * 4])
def test_digests_are_only_linted(text):
    assert refused_by(text) is None
    assert redact(text) == text
    assert [finding.pattern for finding in lint(text)] == [12]


@pytest.mark.parametrize("text", CLEAN)
def test_prose_hashes_paths_and_versions_stay(text):
    assert redact(text) == text
    assert refused_by(text) is None


@pytest.mark.parametrize("text", [sample for _, sample in FILTERED_ONLY])
def test_personal_numbers_are_not_redacted(text):
    assert redact(text) == text


@pytest.mark.parametrize(("row", "sample", "gone", "kept"), FILTERED + REDACTED_ONLY)
def test_redaction_takes_the_secret_and_keeps_the_rest(row, sample, gone, kept):
    result = redact(f"before {sample} after")
    assert gone not in result
    assert kept in result
    assert result.startswith("before ")
    assert result.endswith(" after")
    assert REDACTED in result
    assert redact(result) == result


@pytest.mark.parametrize("sample", [sample for _, sample, _, _ in REDACTED_ONLY])
def test_what_is_only_redacted_is_not_refused(sample):
    assert refused_by(sample) is None


def test_header_rule_comes_first():
    assert redact("Authorization: Bearer abc.def") == f"Authorization: {REDACTED}"
    assert redact(f'curl -H "Authorization: Bearer {JWT}" https://h.example/x') == (
        f'curl -H "Authorization: {REDACTED}" https://h.example/x'
    )


def test_a_key_that_was_cut_off_loses_its_body_too():
    assert redact("x -----BEGIN PRIVATE KEY-----\nMIIEpAIB\nAAKCAQ") == f"x {REDACTED}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"password": "two words", "n": 1}', f'{{"password": "{REDACTED}", "n": 1}}'),
        (r"{\"token\": \"two words\", \"n\": 1}", rf"{{\"token\": \"{REDACTED}\", \"n\": 1}}"),
        (r'password="a\"b c" x', f'password="{REDACTED}" x'),
        ("?token=a&city=b", f"?token={REDACTED}&city=b"),
        ("DB_PASSWORD=a,b;User=c", f"DB_PASSWORD={REDACTED};User=c"),
        ("https://token:abc@host.example/x", f"https://{REDACTED}@host.example/x"),
        ("token: Bearer a1b2c3d4", f"token: {REDACTED} {REDACTED}"),
        ("AWS_SECRET_ACCESS_KEY=wJalr/K7MD", f"AWS_SECRET_ACCESS_KEY={REDACTED}"),
    ],
)
def test_values_end_where_their_notation_ends(text, expected):
    assert redact(text) == expected
    assert redact(expected) == expected


def test_calls_do_not_depend_on_each_other():
    assert [refused_by("password=x"), refused_by("fine"), refused_by("password=x")] == [4, None, 4]
    assert redact("token=x") == redact("token=x")


def test_lint_points_at_spans_in_utf16_units():
    findings = lint("😀 token=x and me@mail.example")
    assert [(f.pattern, f.start, f.end) for f in findings] == [(4, 3, 9), (10, 15, 30)]
    hidden = lint("pass\u200bword=x")
    assert [(f.pattern, f.start, f.end) for f in hidden] == [(4, None, None)]
    assert lint("fine") == []


FRAGMENTS = [
    *(sample for _, sample, _, _ in FILTERED + REDACTED_ONLY), *(sample for _, sample in FILTERED_ONLY),
    "Authorization:", "Bearer", "password", "token", "пароль", "secret", ":", "=", " ", "\n", "\t", '"',
    "'", "\\", '\\"', ",", ";", "&", "@", "/", "://", "https://", "redis://", "user", "[", "]", REDACTED,
    "[redacted", "-", "sk-", "pk-", "ghp_", "AKIA", "AIza", "eyJ", ".", "x" * 16, "1234", "ABCD-1234",
    "A1B2", "device code", "enter", "code", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
    "-----", "é", "😀", "api key", "basic", "%3D", "\u200b",
]  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join))
def test_redacting_twice_equals_once(text):
    once = redact(text)
    assert redact(once) == once


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_goes_through(text):
    once = redact(text)
    assert redact(once) == once
    refused_by(text)
    lint(text)


UNITS = [
    "a", "1", "1 ", "1-", "1.", "1:", "a:", ":", "::", " ", "\t", "-", "-----", "-----BEGIN ", "=", '"',
    "\\", '\\"', "bearer ", "bearer", "bearer a", "password", "password ", "password:", "password=",
    'password="', "password='a", "token=,", "secret access ", "api ", "sk-", "sk-a", "sk-a-", "pk-", "ghp_",
    "xoxb-", "AKIA", "AIza", "M", "Na.", "eyJ", "eyJa.", "eyJ.", "http://", "http://a:", "http://@",
    "redis://a:b", "a@", "@a.", "a@b.", "a.b@c.", "%", "%25", "%41", "f", "ff:", "2001:", "AB12", "AB12 ",
    "ABCD-", "ABCD-1234-", "device code ", "code ", "enter code ", "type ", "authorization:",
    "authorization: a,", "authorization: a=", 'authorization: a="', "Authorization: b ", "\u200b", "\uff41",
    "12345678:", "1 2 3a", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "[redacted]",
    "password=[redacted]", "\u0301", "1111111111a ", "😀",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_hundred_thousand_adversarial_characters_finish(unit):
    text = (unit * (100_000 // len(unit) + 1))[:100_000] + "x\x1f"
    refused_by(text)
    redact(text)
