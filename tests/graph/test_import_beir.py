"""Import of BEIR collections: streaming, idempotent, split by owner and session."""

import json
from datetime import datetime

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.services import enter_principal
from apps.core.db.sessions import principal_session
from apps.graph.beir import Layout, cut, read_corpus
from apps.graph.management.commands.import_beir import subject
from apps.graph.models import Node, Passage
from apps.graph.services import PassageItem
from tests.support import judged_data
from tests.support.factories import make_world

pytestmark = pytest.mark.django_db

DOCUMENTS = [
    {
        "_id": "1",
        "title": "One",
        "text": "first turn",
        "metadata": {"who": "a", "day": 1, "at": "2026-01-01T00:00:00Z"},
    },
    {
        "_id": "2",
        "title": "",
        "text": "second turn",
        "metadata": {"who": "a", "day": 1, "at": "2026-01-02T00:00:00Z"},
    },
    {
        "_id": "3",
        "title": "",
        "text": "other day",
        "metadata": {"who": "a", "day": 2, "at": "2026-01-03T00:00:00Z"},
    },
    {"_id": "4", "title": "", "text": "another owner", "metadata": {"who": "b", "day": 1}},
]


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def folder(tmp_path):
    def write(documents):
        place = tmp_path / "papers"
        place.mkdir(exist_ok=True)
        (place / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\n")
        return place

    return write


def run(folder, world, *more, principal="me"):
    call_command(
        "import_beir",
        str(folder),
        "--workspace",
        world.workspace.slug,
        "--principal",
        principal,
        *more,
        verbosity=0,
    )


def owner(world, name):
    return enter_principal(workspace=world.workspace.pk, subject=name)


def test_a_collection_becomes_passages_and_again_changes_nothing(world, folder, capsys) -> None:
    place = folder(DOCUMENTS)
    run(place, world)
    assert "4 created" in capsys.readouterr().out
    run(place, world)
    assert "4 unchanged" in capsys.readouterr().out
    with principal_session(owner(world, "token:me")):
        assert Node.objects.count() == 4
        passage = Passage.objects.select_related("node").get(identity="1")
        assert (passage.repo, passage.type, passage.node.label, passage.node.scope) == (
            "conn:papers",
            "document",
            "One",
            "default",
        )


def test_changed_texts_replace(world, folder, capsys) -> None:
    run(folder(DOCUMENTS), world)
    run(folder([DOCUMENTS[0] | {"text": "changed"}, *DOCUMENTS[1:]]), world)
    assert "3 unchanged, 1 updated" in capsys.readouterr().out


def test_split_sessions_positions_times_scope_and_collection(world, folder) -> None:
    run(
        folder(DOCUMENTS),
        world,
        *("--split-by", "metadata.who", "--session-by", "metadata.day", "--event-time", "metadata.at"),
        *("--scope", "talks", "--collection", "mine"),
    )
    with principal_session(owner(world, "token:me:a")):
        rows = Passage.objects.order_by("session", "position").values_list("identity", "session", "position")
        assert list(rows) == [("1", "1", 0), ("2", "1", 1), ("3", "2", 0)]
        node = Node.objects.select_related("passage").get(passage__identity="1")
        assert (node.scope, node.passage.repo) == ("talks", "conn:mine")
        assert node.event_at == datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    with principal_session(owner(world, "token:me:b")):
        assert Node.objects.get().event_at is None


def test_long_texts_are_cut_at_white_space_without_loss() -> None:
    text = "word " * 5_000
    parts = cut(PassageItem(identity="x", title="T", text=text))
    assert "".join(part.text for part in parts) == text
    assert all(len(part.text) <= 8_000 and part.text.endswith(" ") for part in parts)
    assert [part.part for part in parts] == list(range(len(parts)))
    assert len(cut(PassageItem(identity="x", text="y" * 10_000))) == 1
    assert len(cut(PassageItem(identity="x", text="y" * 10_001))) == 2


@pytest.mark.parametrize(
    ("given", "value", "expected"),
    [
        ("me", None, "token:me"),
        ("me", "a", "token:me:a"),
        ("github:7", None, "github:7"),
        ("github:7", "a", "github:7:a"),
        ("shared", None, "shared"),
    ],
)
def test_subjects(given, value, expected) -> None:
    assert subject(given, value) == expected


def test_refusals(world, folder, tmp_path) -> None:
    with pytest.raises(CommandError, match="holds no corpus"):
        run(tmp_path, world)
    with pytest.raises(CommandError, match="no such workspace"):
        call_command("import_beir", str(folder(DOCUMENTS)), "--workspace", "nowhere", "--principal", "me")
    (folder([]) / "corpus.jsonl").write_text('{"_id": "1", "text": "secret"}\n{"no": "id and secret"}\n')
    with pytest.raises(CommandError, match=r"line 2 of corpus\.jsonl") as refused:
        run(tmp_path / "papers", world)
    assert "secret" not in str(refused.value)


def test_a_judged_collection_is_read_whole() -> None:
    corpus = judged_data("cranfield") / "corpus.jsonl"
    documents = list(read_corpus(corpus, Layout(repo="conn:cranfield")))
    assert len(documents) == 1400
