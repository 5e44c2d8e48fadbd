"""The project: settings, routes, the Celery application, embedded servers."""

from memory_platform.celery import app as celery_app

__all__ = ["celery_app"]
