"""Pages of sign-in: the second factor, the way back from an OpenID provider, and what is said to who is refused."""

from typing import Any, Final

import structlog
from django import forms
from django.conf import settings
from django.contrib import auth
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views import View
from django_otp import login as otp_login
from django_otp import match_token
from django_otp.plugins.otp_totp.models import TOTPDevice
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView

from apps.accounts import second_factor
from apps.accounts.oidc import NoAnswer, NotStaff, NotTrusted, SignInRefused
from apps.accounts.sign_in import is_staff, second_factor_due
from apps.core.middleware.csp import strict

log = structlog.get_logger(__name__)


class CodeForm(forms.Form):
    code = forms.CharField(
        label="Code of your authenticator app, or a recovery code",
        max_length=16,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code"}),
    )


@method_decorator(strict, name="dispatch")
class SecondFactorView(View):
    """Asks a staff user who gave a password for the second factor, or has one set up.

    GET shows the code field, with a new secret where none is set up. POST takes the code; on success the
    browser session is verified and goes on to `next`.
    """

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if not is_staff(request.user):
            return redirect("admin:login")
        if request.method == "GET" and not second_factor_due(request) and request.user.is_verified():  # type: ignore[union-attr]
            return redirect(self._next(request))
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(request, CodeForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = CodeForm(request.POST)
        user = request.user
        assert isinstance(user, User)
        if form.is_valid():
            code = form.cleaned_data["code"].replace(" ", "")
            if second_factor.is_set_up(user):
                device = match_token(user, code)
                if device is not None:
                    otp_login(request, device)
                    return redirect(self._next(request))
            elif (codes := second_factor.confirm(user, code)) is not None:
                otp_login(request, second_factor.device_of(user))
                return self._recovery_page(request, codes)
            form.add_error("code", "That code is not right, or too many were tried. Wait for the next one.")
        return self._page(request, form)

    def _page(self, request: HttpRequest, form: CodeForm) -> HttpResponse:
        user = request.user
        assert isinstance(user, User)
        context = {"form": form, "next": self._next(request), "title": "Second factor"}
        if not second_factor.is_set_up(user):
            device: TOTPDevice = second_factor.begin(user)
            context |= {"drawing": second_factor.drawing(device), "secret": second_factor.secret(device)}
        return render(request, "accounts/second_factor.html", context)

    def _recovery_page(self, request: HttpRequest, codes: list[str]) -> HttpResponse:
        context = {"codes": codes, "next": self._next(request), "title": "Recovery codes"}
        return render(request, "accounts/recovery_codes.html", context)

    @staticmethod
    def _next(request: HttpRequest) -> str:
        wanted = request.POST.get("next") or request.GET.get("next") or ""
        if url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure()):
            return wanted
        return reverse("admin:index")


class NotBegunHere(SignInRefused):
    """What came back belongs to no sign-in of this browser."""


class Declined(SignInRefused):
    """The provider, or the person there, said no."""


REFUSALS: Final[dict[type[SignInRefused], tuple[int, str, str]]] = {
    NoAnswer: (
        503,
        "The sign-in service of your organisation does not answer.",
        "Try again in a minute. Meanwhile a password works for whoever has one.",
    ),
    NotTrusted: (
        403,
        "What the sign-in service answered could not be trusted.",
        "Nobody was let in. Try again; if it stays so, give an operator the request id.",
    ),
    NotStaff: (
        403,
        "No staff user goes with that account.",
        "Your organisation knows you, but no staff user here has the e-mail address that it has verified of you. "
        "Ask a superuser of this platform. If you have another account there, sign out of this one first.",
    ),
    NotBegunHere: (
        400,
        "This sign-in was not begun in this browser, or is already done.",
        "Begin it again from the page of sign-in.",
    ),
    Declined: (
        403,
        "The sign-in service of your organisation did not let you in.",
        "It was refused or cancelled there.",
    ),
}
# OpenID Connect Core 1.0, 3.1.2.6, and RFC 6749, 4.1.2.1.
AUTHORIZATION_ERRORS: Final = frozenset(
    {
        "invalid_request",
        "unauthorized_client",
        "access_denied",
        "unsupported_response_type",
        "invalid_scope",
        "server_error",
        "temporarily_unavailable",
        "interaction_required",
        "login_required",
        "account_selection_required",
        "consent_required",
    }
)


@method_decorator(strict, name="dispatch")
class OIDCCallbackView(OIDCAuthenticationCallbackView):
    """The way back from the OpenID provider. Its route is marked `own_transactions`, since the provider is asked.

    The library holds the state of a sign-in; who comes in is the backend's word, and every refusal a page.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        try:
            if "error" in request.GET:
                raise self._declined(request)
            response: HttpResponse = super().get(request)
        except SignInRefused as refused:
            return _refusal(request, refused)
        except SuspiciousOperation:
            return _refusal(request, NotBegunHere("unknown_state"))
        return response

    def login_success(self) -> HttpResponse:
        # Before the session is made anew, which may empty it.
        target = self.success_url
        if auth.SESSION_KEY in self.request.session:
            # Django keeps the key of who is in already; what was in somebody's hand opens no more than before.
            self.request.session.cycle_key()
        # Also for who is in already: the session then says by which way, on which the second factor depends.
        auth.login(self.request, self.user)
        log.info("staff_signed_in", source="oidc")
        return redirect(target)

    def login_failure(self) -> HttpResponse:
        raise NotBegunHere("unknown_state")

    @staticmethod
    def _declined(request: HttpRequest) -> Declined:
        """The state is used up; who is signed in here stays, since any page may link to this address."""
        states = request.session.get("oidc_states", {})
        if states.pop(request.GET.get("state", ""), None) is None:
            return Declined("unknown_state")
        request.session.modified = True
        error = request.GET["error"]
        return Declined(f"provider_{error if error in AUTHORIZATION_ERRORS else 'error'}")


def _refusal(request: HttpRequest, refused: SignInRefused) -> HttpResponse:
    log.warning("staff_sign_in_refused", source="oidc", code=refused.code)
    status, title, advice = REFUSALS[type(refused)]
    context = {"title": title, "advice": advice, "request_id": str(getattr(request, "id", "") or "")}
    response = render(request, "accounts/sign_in_refused.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response


def locked_out(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    """After too many wrong passwords for a name at an address."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)
    response = render(
        request, "accounts/locked_out.html", {"minutes": minutes, "title": "Locked"}, status=429
    )
    response["Retry-After"] = str(minutes * 60)
    return response
