"""Every setting that an operator may give, read from the environment once.

`manage.py settings_reference` prints this class as a table, so a field's description is its documentation.
"""

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

BASE_DIR = Path(__file__).resolve().parent.parent
# With a shared secret or none at all, others than the provider could sign.
SignAlgorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
OIDC_ADDRESSES = ("oidc_issuer", "oidc_authorization_url", "oidc_token_url", "oidc_user_url", "oidc_jwks_url")


class Environment(BaseSettings):
    """Settings of a process. Names in the environment are the field names in capitals."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True)

    memory_production: bool = Field(
        False,
        description="Production settings: secure cookies, HTTPS redirect, HSTS, second factor for staff, "
        "and no defaults for secrets.",
    )
    debug: bool = Field(False, description="Django's debug pages. Refused together with MEMORY_PRODUCTION.")
    secret_key: SecretStr | None = Field(
        None,
        description="Signs sessions and cursors, at least 50 characters. The embedded default makes one.",
    )
    allowed_hosts: list[str] = Field(
        ["localhost", "127.0.0.1", "[::1]"], description="Host names that requests may name, as a JSON list."
    )
    csrf_trusted_origins: list[str] = Field(
        [], description="Origins of the admin behind a proxy, as a JSON list."
    )
    memory_var: Path = Field(
        BASE_DIR / "var", description="Folder of the embedded servers and generated secrets."
    )
    bind: str = Field("127.0.0.1", description="Address that the web server of `make run` listens on.")
    port: int = Field(
        8000,
        ge=1,
        le=65535,
        description="Port of the web server of `make run`; the next free one when taken.",
    )
    demo: bool = Field(True, description="Whether the first `make run` writes a demo memory.")
    database_url: str | None = Field(
        None, description="Login memory_app: web, workers, beat. Without it the embedded PostgreSQL is used."
    )
    database_owner_url: str | None = Field(
        None, description="Login memory_owner: migrate, verify_roles and the few commands that say so."
    )
    database_admin_url: str | None = Field(None, description="May create roles: provision_roles alone.")
    monitor_database_url: str | None = Field(None, description="Login memory_probe: monitors alone.")
    memory_database_login: str = Field("app", description="Which login this process uses: app or owner.")
    database_pool_min: int = Field(1, ge=0, description="Connections that a process keeps open.")
    database_prepared_statements: bool = Field(
        True,
        description="Prepare the statements of hot paths on the server. Turn off behind a PgBouncer "
        "without max_prepared_statements.",
    )
    database_pool_max: int = Field(12, ge=1, description="Connections that a process opens at most.")
    broker_url: str | None = Field(
        None, description="Valkey or Redis. Without it the embedded Valkey is used."
    )
    outbound_private_hosts: list[str] = Field(
        [],
        description="Hosts with private addresses that key sets, sign-in and webhooks may use, as a JSON list. "
        "All others must be public.",
    )
    trusted_proxies: int = Field(
        0,
        ge=0,
        description="Proxies in front whose X-Forwarded-For and X-Forwarded-Proto are believed; 0: none is there.",
    )
    throttle_url: str | None = Field(
        None, description="Valkey or Redis that counts calls. Without it the broker's server counts."
    )
    throttle_token_per_minute: int = Field(
        600, ge=0, description="Calls a minute with one token; 0: no limit."
    )
    throttle_address_per_minute: int = Field(
        1200, ge=0, description="Calls a minute from one address; 0: no limit."
    )
    throttle_failures_per_minute: int = Field(
        30,
        ge=0,
        description="Invalid credentials a minute from one address, after which none is tried; 0: no limit.",
    )
    staff_second_factor: bool = Field(
        False, description="Whether all staff need a second factor (TOTP). Always so in production."
    )
    oidc_client_id: str = Field(
        "",
        description="Turns on staff sign-in by OpenID Connect; the provider's name for the platform. "
        "`manage.py oidc_settings ISSUER` prints what goes with it.",
    )
    oidc_client_secret: SecretStr | None = Field(None, description="The secret that belongs to it.")
    oidc_token_basic: bool = Field(
        False,
        description="Send the secret by HTTP Basic authentication (client_secret_basic) instead of in the form.",
    )
    oidc_issuer: str = Field("", description="The provider as its ID tokens name it (`iss`), to the letter.")
    oidc_authorization_url: str = Field("", description="Authorization endpoint of the provider.")
    oidc_token_url: str = Field("", description="Token endpoint of the provider.")
    oidc_user_url: str = Field("", description="Userinfo endpoint of the provider.")
    oidc_jwks_url: str = Field("", description="Key set of the provider.")
    oidc_sign_algorithm: SignAlgorithm = Field(
        "RS256", description="Algorithm of the provider's ID tokens, an asymmetric one."
    )
    oidc_second_factor: bool = Field(
        False, description="The provider asks for a second factor itself, so the platform does not."
    )
    erasure_file: Path | None = Field(
        None,
        description="File outside the database and its backups that says what must not come back after a restore; "
        "shared by web and workers. Without it erasures.jsonl in MEMORY_VAR.",
    )
    observation_backup_days: int | None = Field(
        None, ge=0, description="Days that backups are kept, as certificates of erasure state it."
    )
    observation_mode_ceiling: str = Field(
        "off",
        description="The most that the journal of searches may keep in any workspace: off, hash or platform-text. "
        "Another spelling is off.",
    )
    observation_kill_switch: str = Field(
        "false",
        description="Stops all collection of this process. Anything but false, 0, no, off or nothing stops it.",
    )
    observation_hmac_keys: SecretStr = Field(
        SecretStr(""),
        description="Keys of query fingerprints: a JSON object of key id (a-z, 0-9, -) to secret of at least 32 "
        "characters. An id stays until the last record under it is gone.",
    )
    observation_hmac_active_key: str = Field(
        "", description="Id of the key that writes; without it nothing is."
    )
    observation_text_days: str | None = Field(
        None,
        description="Days of 24 hours that a query text may be kept, 1 to 90; 90 when unset. Anything else: no text.",
    )
    observation_expire_batch: int = Field(
        5000, ge=50, le=5000, description="Records that one transaction of expiry deletes at most."
    )
    observation_statement_timeout_ms: int = Field(
        120_000, ge=100, description="Milliseconds that such a transaction may take."
    )
    observation_budget_seconds: int = Field(
        600, ge=1, le=600, description="Seconds after which a run of expiry leaves the rest to the next."
    )
    observation_deadman_url: str = Field(
        "",
        description="HTTPS address that is called after each complete expiry without alarm; a service outside "
        "alarms when the calls stop.",
    )
    embedder_api_key: SecretStr | None = Field(
        None, description="Bearer key for an embedder behind HTTP; its address is registered, the key never."
    )
    memory_reranker: str = Field(
        "", description="Name of an installed reranker that ranks the first rows anew. Empty: none does."
    )
    memory_tokenizer: str = Field(
        "",
        description="Tokenizer that counts contexts: tiktoken:NAME with its files in TIKTOKEN_CACHE_DIR, or the path "
        "of a tokenizer.json. Empty: the built-in estimate. Nothing is fetched.",
    )
    log_level: str = Field("INFO", description="Least level that is logged.")
    memory_release: str = Field(
        "", description="Build id that processes report in their heartbeats. Empty: unknown, never a guess."
    )
    public_url: str = Field(
        "http://localhost:8000", description="Where people reach the admin; links in notices begin with it."
    )
    email_host: str | None = Field(
        None,
        description="Mail server of alarms. Without it, notices by e-mail fail with mail_not_configured.",
    )
    email_port: int = Field(587, ge=1, le=65535, description="Port of the mail server.")
    email_user: str = Field("", description="User on the mail server.")
    email_password: SecretStr = Field(SecretStr(""), description="Password on the mail server.")
    email_tls: bool = Field(True, description="STARTTLS before anything is sent.")
    email_from: str = Field("memory@localhost", description="Sender of notices.")
    worker_prefetch: int = Field(
        1, ge=1, description="Messages that a worker process takes ahead. Long runs want 1."
    )
    otel_exporter_otlp_endpoint: str | None = Field(
        None, description="Where OpenTelemetry traces go, when its SDK and exporter are installed."
    )

    def oidc_gaps(self) -> list[str]:
        """Settings that sign-in by OpenID Connect lacks, in capitals; none where it is off."""
        if not self.oidc_client_id:
            return []
        return [name.upper() for name in OIDC_ADDRESSES if not getattr(self, name).startswith("https://")]


@lru_cache
def environment() -> Environment:
    return Environment()
