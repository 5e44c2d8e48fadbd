"""The start page: is it healthy, and what needs me?"""

from typing import Any

from django.http import HttpRequest


def start_page(request: HttpRequest) -> dict[str, Any]:
    return {}
