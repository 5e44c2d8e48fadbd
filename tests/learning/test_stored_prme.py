"""An evaluation of imported receipts is that of their files, byte for byte."""

import pytest

from apps.core.db.sessions import principal_session
from apps.learning.evaluate import evaluate
from apps.learning.exceptions import LearningInputError, NotReproducible
from apps.learning.schemas import LearningConfig
from apps.learning.stored_prme import stored_prme_inputs
from apps.retrieval.prme.reading import read_lines
from apps.retrieval.services import import_lines, imports
from tests.learning.test_reference import arguments, evaluation
from tests.support import judged_data
from tests.support.factories import make_principal, make_world
from tests.support.prme import dump, make_receipt

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


def test_a_report_of_imported_files_is_that_of_the_files(world, me) -> None:
    folder = judged_data("prme") / "weighted-v12"
    with principal_session(me):
        for name in ("receipts", "records"):
            import_lines(lines=read_lines(folder / f"{name}.jsonl.gz"))
    given = arguments("weighted-v12")
    with principal_session(me):
        inputs = stored_prme_inputs(query_groups=given["query_groups"])
    report = evaluate(
        inputs, scopes=("project",), config=LearningConfig.model_validate(given.get("config", {}))
    )
    assert report.model_dump_json() == evaluation("weighted-v12").model_dump_json()
    with principal_session(make_principal(world.workspace)), pytest.raises(LearningInputError):
        stored_prme_inputs()


def test_a_receipt_that_does_not_hold_fails_the_evaluation(me, monkeypatch) -> None:
    plain = imports._row

    def spoiled(running, receipt):
        row = plain(running, receipt)
        row.checksum = "0" * 64
        return row

    monkeypatch.setattr(imports, "_row", spoiled)
    features = ((0.9, 0.8, 0.4, 0.5, 0.6, 0.7), (0.6, 0.5, 0.4, 0.5, 0.6, 0.7))
    with principal_session(me):
        import_lines(lines=[(1, dump(make_receipt(features)))])
        with pytest.raises(NotReproducible):
            stored_prme_inputs()
