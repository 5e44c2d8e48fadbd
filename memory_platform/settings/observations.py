"""The journal of served searches. What is not clearly said keeps less: unknown spellings count as off."""

import json
import re

from memory_platform.environment import environment

env = environment()

_OFF = {"", "0", "false", "no", "off"}


def _text_days(given: str | None) -> int | None:
    """1..90 whole days; 90 when unset; None (hashes only) for everything else."""
    if given is None:
        return 90
    days = int(given) if re.fullmatch(r"[0-9]{1,3}", given, re.ASCII) else 0
    return days if 1 <= days <= 90 else None


def _keys(given: str) -> dict[str, str]:
    """Key ids and secrets out of a JSON object; what is none gives no key."""
    try:
        found = json.loads(given or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: secret
        for name, secret in found.items()
        if isinstance(secret, str) and re.fullmatch(r"[a-z0-9-]{1,32}", name, re.ASCII)
    }


OBSERVATION_MODE_CEILING = env.observation_mode_ceiling
OBSERVATION_KILL_SWITCH = env.observation_kill_switch.strip().lower() not in _OFF
OBSERVATION_HMAC_KEYS = _keys(env.observation_hmac_keys.get_secret_value())
OBSERVATION_HMAC_ACTIVE_KEY = env.observation_hmac_active_key
OBSERVATION_TEXT_DAYS = _text_days(env.observation_text_days)
OBSERVATION_EXPIRE_BATCH = env.observation_expire_batch
OBSERVATION_STATEMENT_TIMEOUT_MS = env.observation_statement_timeout_ms
OBSERVATION_BUDGET_SECONDS = env.observation_budget_seconds
OBSERVATION_DEADMAN_URL = env.observation_deadman_url
MONITOR_DATABASE_URL = env.monitor_database_url
