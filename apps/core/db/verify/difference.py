from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is other than declared.

    loosens: it gives more than declared (a right, a way round a check, a row that expiry would miss).
    """

    family: str
    object: str
    expected: str
    found: str
    loosens: bool = True

    def __str__(self) -> str:
        return f"{self.family}: {self.object}: expected {self.expected}, found {self.found}"

    def document(self) -> dict[str, Any]:
        return asdict(self)
