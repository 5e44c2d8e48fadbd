import pytest

from tests.support import collection


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither broker nor embedder: work is done in place, and nothing has a vector."""
    collection.quiet(monkeypatch)
