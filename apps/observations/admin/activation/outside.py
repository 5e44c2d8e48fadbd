"""Acts that open sessions of their own: probes ask as others do, so that no session of the page may be around them.

Preview and checks run in the person's session, which ends; then comes the act; then what the person is told.
"""

from abc import ABC, abstractmethod
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from apps.core.admin import Done, GovernedAction, Preview
from apps.core.db.sessions import staff_session
from apps.core.problems import Problem


class OutsideAction(GovernedAction, ABC):
    """`carry_out` in place of `act`: outside of any session; it says what happened, and whether that is good news.

    Its route is marked `own_transactions`.
    """

    agreed: dict[str, Any] | None = None

    @abstractmethod
    def carry_out(self, request: HttpRequest, data: dict[str, Any]) -> tuple[bool, str]:
        """Raises `Problem` to refuse."""

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        self.agreed = data
        return Done("")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with staff_session(int(request.user.pk or 0)):
            answer = _rendered(super().dispatch(request, *args, **kwargs))
        if self.agreed is None:
            return answer
        try:
            good, told = self.carry_out(request, self.agreed)
        except Problem as problem:
            good, told = False, f"Refused: {problem.detail or problem.title}."
        (messages.success if good else messages.error)(request, told)
        back = self._back()
        if "X-Gov-Dialog" in request.headers:
            sent = HttpResponse(status=204)
            sent["X-Gov-Location"] = back
            return sent
        return redirect(back)

    def _finish(self, request: HttpRequest, done: Done) -> HttpResponseBase:
        # Nothing has happened yet; what the person is told comes after the act.
        return HttpResponse(status=204)


def _rendered(response: HttpResponseBase) -> HttpResponseBase:
    return response.render() if isinstance(response, TemplateResponse) else response
