"""Reading the files that the evaluation commands are given."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from apps.learning.exceptions import LearningInputError
from apps.retrieval.prme.reading import load_json

Model = TypeVar("Model", bound=BaseModel)


class BadFile(LearningInputError):
    """A file is missing, or not the JSON document that it should be."""

    code = "bad_file"


def read_document(path: Path, model: type[Model]) -> Model:
    """A JSON file as a strict document. Raises BadFile, which names the field and not its value."""
    raw = _read(path)
    _parse(path, raw)
    try:
        return model.model_validate_json(raw)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
        pointer = "".join(f"/{part}" for part in first["loc"])
        raise BadFile(f"{path.name}: {first['msg']} (at {pointer})") from None


def read_names(path: Path) -> dict[str, str]:
    """A JSON object from text to text. Raises BadFile."""
    names = _parse(path, _read(path))
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise BadFile(f"{path.name}: an object from request ids to group names is needed")
    return names


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise BadFile(f"{path.name}: the file cannot be read") from None


def _parse(path: Path, raw: bytes) -> Any:
    try:
        return load_json(raw)
    except (ValueError, RecursionError):
        raise BadFile(f"{path.name}: not JSON with distinct keys and finite numbers") from None
