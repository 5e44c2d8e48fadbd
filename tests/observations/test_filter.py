"""What looks like a credential or a personal number is kept nowhere, however it is written."""

import json
import logging

import pytest
from django.db import connection

from apps.core.db.sessions import principal_session
from apps.core.problems import InvalidRequest
from apps.core.reasons import check_reason
from apps.observations.events import may_be_kept
from apps.observations.services.erasure import TABLES
from tests.observations.test_admission import ask, shared_of
from tests.support import journal
from tests.support.library import CHAIN, store

WORD = "Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9"
SAMPLES = {
    "pem": "-----BEGIN RSA PRIVATE KEY-----",
    "bearer": f"Bearer {WORD}",
    "password": "password: Tr0ub4dorAnd3",
    "passwd": "passwd=Tr0ub4dorAnd3",
    "secret": "secret: Tr0ub4dorAnd3",
    "api key": "api key = Tr0ub4dorAnd3",
    "token": "token: Tr0ub4dorAnd3",
    "parol": "пароль: Tr0ub4dorAnd3",
    "tokyen": "токен = Tr0ub4dorAnd3",
    "sk": f"sk-{WORD}",
    "ghp": f"ghp_{WORD}ABCDEF",
    "gho": f"gho_{WORD}ABCDEF",
    "github_pat": f"github_pat_{WORD}",
    "xoxb": f"xoxb-1234567890-{WORD}",
    "xoxa": f"xoxa-1234567890-{WORD}",
    "xoxp": f"xoxp-1234567890-{WORD}",
    "xoxr": f"xoxr-1234567890-{WORD}",
    "xoxs": f"xoxs-1234567890-{WORD}",
    "xoxe": f"xoxe-1234567890-{WORD}",
    "akia": "AKIAIOSFODNN7EXAMPLE",
    "aiza": "AIza" + "SyA-1234567890abcdefghijklmnopqrstu",
    "bot": "12345678:" + "AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc",
    "chat-bot": "MTIzNDU2Nzg5MDEyMzQ1Njc4" + ".G1b2c3." + "abcdefghijklmnopqrstuvwxyz012",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "postgres": "postgres://user:pass@db.example/app",
    "mongodb": "mongodb+srv://user:pass@db.example/app",
    "redis": "rediss://user:pass@cache.example",
    "http": "https://user:pass@example.org/",
    "snils": "112-233-445 95",
    "iban": "DE89370400440532013000",
    "mail": "someone@example.org",
    "phone": "+7 (912) 345-67-89",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "ipv4": "192.168.10.20",
    "ipv6": "2001:db8:85a3:0:0:8a2e:370:7334",
}


def full_width(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)


def split(text: str) -> str:
    return "\u200b".join(text)


def encoded(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


FORMS = {"plain": str, "full-width": full_width, "zero-width": split, "percent": encoded}


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", SAMPLES, ids=str)
def test_samples_are_not_kept_in_any_form(name, form) -> None:
    text = f"why does {FORMS[form](SAMPLES[name])} fail"
    assert not may_be_kept(text)
    with pytest.raises(InvalidRequest):
        check_reason(text)


@pytest.mark.django_db(transaction=True)
def test_filtered_queries_leave_their_bytes_nowhere(on, owner_connection, caplog) -> None:
    store(shared_of(on), *CHAIN)
    caplog.set_level(logging.DEBUG)
    sample = SAMPLES["password"]
    answer = json.loads(ask(on.principal, query=f"billing {sample}"))
    assert answer["_meta"]["retrieval/persistence"] == "durable"
    dispositions = owner_connection.execute(
        "SELECT text_disposition FROM observations_observation"
    ).fetchall()
    assert dispositions == [("filtered",)]
    secret = "Tr0ub4dorAnd3"
    for table in (*TABLES, "traces_trace", "core_auditentry", "operations_jobrun"):
        found = owner_connection.execute(
            f"SELECT count(*) FROM {table} row WHERE row::text LIKE %s", [f"%{secret}%"]
        ).fetchone()
        assert found == (0,), table
    assert secret not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_private_searches_keep_no_text(on, owner_connection) -> None:
    journal.set_policy(owner_connection, on.workspace.pk, collect_private=True)
    store(on.principal, *CHAIN)
    assert "_meta" in json.loads(ask(on.principal, corpus="all"))
    found = owner_connection.execute(
        "SELECT corpus, text_disposition FROM observations_observation"
    ).fetchall()
    assert found == [("private", "private")]
    assert journal.count(owner_connection, "observation_text") == 0
    with principal_session(on.principal), connection.cursor() as cursor:
        cursor.execute("SELECT query_text FROM observation_visible")
        assert cursor.fetchall() == [(None,)]
