"""Reading the JSON files that the evaluation commands are given."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, RootModel

from apps.core.problems import InvalidRequest
from apps.core.schemas import Text, loads, parse
from apps.learning.exceptions import LearningInputError

Model = TypeVar("Model", bound=BaseModel)
# Settings and trials; receipts are read line by line elsewhere.
MAX_BYTES = 64 * 1024 * 1024


class BadFile(LearningInputError):
    """A file is missing, too large, or not the JSON document that it should be."""

    code = "bad_file"


class Names(RootModel[dict[Text, Text]]):
    """An object from text to text."""


def read_document(path: Path, model: type[Model]) -> Model:
    """A JSON file as a strict document. Raises BadFile, which names the field and not its value."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadFile(f"{path.name}: larger than {MAX_BYTES} bytes")
        return parse(model, loads(path.read_bytes()))
    except OSError:
        raise BadFile(f"{path.name}: the file cannot be read") from None
    except InvalidRequest as invalid:
        raise BadFile(f"{path.name}: {invalid.detail} (at {invalid.pointer or '/'})") from None


def read_names(path: Path) -> dict[str, str]:
    """A JSON object from text to text. Raises BadFile."""
    return read_document(path, Names).root
