"""A person of the staff before a running installation: signed in, acting through previews, without a screen."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import httpx

from tests.support.stack import Stack

HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class StaffDesk:
    """What one person sees and presses."""

    def __init__(self, http: httpx.Client, name: str) -> None:
        self.http, self.name = http, name

    def page(self, path: str) -> str:
        """The words of a page."""
        return words(self._get(path).text)

    def html(self, path: str) -> str:
        return self._get(path).text

    def act(self, path: str, **fields: Any) -> str:
        """Open the page of a governed action, then press its button; the words of the page after it."""
        return words(self.act_html(path, **fields))

    def act_html(self, path: str, **fields: Any) -> str:
        form = self._get(path)
        hidden = {name: unescape(value) for name, value in HIDDEN.findall(form.text)}
        given = hidden | {"reason": "pilot of the journal"} | fields
        answer = self.http.post(path, data=given, headers={"Referer": str(form.url)})
        assert answer.status_code == 200, (answer.status_code, words(answer.text))
        return answer.text

    def _get(self, path: str) -> httpx.Response:
        answer = self.http.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        return answer


@contextmanager
def signed_in(stack: Stack, name: str, password: str) -> Iterator[StaffDesk]:
    with httpx.Client(base_url=stack.url, follow_redirects=True, timeout=60, trust_env=False) as http:
        http.get("/admin/login/")
        form = {
            "username": name,
            "password": password,
            "csrfmiddlewaretoken": http.cookies["csrftoken"],
            "next": "/admin/",
        }
        page = http.post("/admin/login/", data=form, headers={"Referer": f"{stack.url}/admin/login/"})
        assert page.url.path == "/admin/", page.url
        yield StaffDesk(http, name)


def words(html: str) -> str:
    shown = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", shown)))
