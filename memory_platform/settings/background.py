"""Celery: broker, clock and serialisation. The schedule is declared with the tasks."""

from memory_platform.embedded import celery_broker_url, connection_urls
from memory_platform.environment import environment

env = environment()

CELERY_BROKER_URL = celery_broker_url(connection_urls(env).broker)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A message that was not acknowledged goes to another worker after this time; no run may last as long
# (`apps.operations.declarations.LONGEST_RUN`).
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 30,
    # A request that wants to send looks once more and goes on: what was not sent, the schedule finds.
    "max_retries": 1,
    "interval_start": 0,
}
CELERY_BEAT_SCHEDULER = "apps.operations.beat:Scheduler"
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_RESULT_EXPIRES = None
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = env.worker_prefetch
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_TASK_DEFAULT_QUEUE = "memory"
DJANGO_CELERY_BEAT_TZ_AWARE = True
