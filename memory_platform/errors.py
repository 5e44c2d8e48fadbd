"""Answers where no view answers: problem documents for the API, Django's pages for everything else."""

from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt

from apps.core.problems import Forbidden, InvalidRequest, NotFound, Problem, problem_response

API_PREFIX = "/v1/"


def is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith(API_PREFIX)


@csrf_exempt
def unknown_route(request: HttpRequest, *args: str) -> HttpResponse:
    return problem_response(NotFound("There is no such address.", code="unknown_route"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem_response(InvalidRequest()) if is_api(request) else defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_api(request):
        return problem_response(Forbidden())
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return unknown_route(request) if is_api(request) else defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page names the request, so that the log entry can be found; nothing of the error is shown."""
    if is_api(request):
        return problem_response(Problem())
    context = {"request_id": str(getattr(request, "id", "") or "")}
    return HttpResponse(loader.get_template("500.html").render(context), status=500)
