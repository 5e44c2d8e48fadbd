"""The base of all parts."""

import hashlib
from typing import ClassVar

from django.template.loader import render_to_string
from django.utils.safestring import SafeString


class Part:
    """A value that draws itself through `template_name`, in which it is called `part`."""

    template_name: ClassVar[str]

    def render(self) -> SafeString:
        return render_to_string(self.template_name, {"part": self})

    def __str__(self) -> SafeString:
        return self.render()

    def __html__(self) -> SafeString:
        return self.render()


def dom_id(*words: object) -> str:
    """An element id that is the same for the same words on every page load."""
    return "gv-" + hashlib.sha256("\x1f".join(map(str, words)).encode()).hexdigest()[:10]
