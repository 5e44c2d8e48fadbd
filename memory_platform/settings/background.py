"""Celery: broker, clock and serialisation. The schedule is declared with the tasks."""

from memory_platform.embedded import celery_broker_url, connection_urls
from memory_platform.environment import environment

CELERY_BROKER_URL = celery_broker_url(connection_urls(environment()).broker)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
