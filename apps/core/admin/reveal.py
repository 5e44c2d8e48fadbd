"""Closed text on a page, and the act that opens it once."""

from abc import ABC, abstractmethod
from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin.governed import Done, GovernedAction, Preview


class RevealAction(GovernedAction, ABC):
    """Shows one text to one person in one answer; a subclass says which, and the service that it calls audits it.

    fill: `#` and the id of the place on the page that is closed before and holds the text after.
    """

    name, path = "reveal", "<uuid:object_id>/reveal/"
    grants = ("reveal_text",)
    stands_elsewhere = True

    @classmethod
    def lock(cls, model_admin: Any, request: HttpRequest, obj: Any, words: str) -> SafeString:
        """The closed place, with the button for who may open it."""
        url = model_admin.url(cls.name, obj.pk) if cls.permitted(model_admin, request, obj) else ""
        return format_html('<span id="{}">{}</span>', cls.fill.removeprefix("#"), ui.Lock(words, url))

    @abstractmethod
    def text_of(self, obj: Any, reason: str) -> Any:
        """Reveal by the service: what is shown. Raises `Problem` to refuse."""

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        text = self.text_of(obj, data["reason"])
        return Done(f"Revealed by you at {clock.now():%H:%M:%S} UTC.", revealed=text)
