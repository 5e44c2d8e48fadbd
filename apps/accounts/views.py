"""Pages of sign-in: the second factor, and the refusal of a locked name."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views import View
from django_otp import login as otp_login
from django_otp import match_token
from django_otp.plugins.otp_totp.models import TOTPDevice

from apps.accounts import second_factor
from apps.accounts.sign_in import is_staff, second_factor_due
from apps.core.middleware.csp import strict


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


def locked_out(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    """After too many wrong passwords for a name at an address."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)
    response = render(
        request, "accounts/locked_out.html", {"minutes": minutes, "title": "Locked"}, status=429
    )
    response["Retry-After"] = str(minutes * 60)
    return response
