"""Release, links in notices, mail."""

from memory_platform.environment import environment

env = environment()

ERASURE_FILE = env.erasure_file or env.memory_var / "erasures.jsonl"
ERASURE_BACKUP_DAYS = env.observation_backup_days

RELEASE = env.memory_release
PUBLIC_URL = env.public_url.rstrip("/")

EMAIL_CONFIGURED = env.email_host is not None
EMAIL_HOST = env.email_host or ""
EMAIL_PORT = env.email_port
EMAIL_HOST_USER = env.email_user
EMAIL_HOST_PASSWORD = env.email_password.get_secret_value()
EMAIL_USE_TLS = env.email_tls
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.email_from
