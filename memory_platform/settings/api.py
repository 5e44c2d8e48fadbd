"""The REST API: DRF without a sign-in of its own, and the schema with documentation served from here."""

REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "apps.core.problems_drf.exception_handler",
    "DEFAULT_AUTHENTICATION_CLASSES": ["apps.accounts.api_auth.CallerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["apps.accounts.api_auth.CallerPermission"],
    "DEFAULT_PARSER_CLASSES": ["apps.core.api_parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "apps.core.openapi.PlatformSchema",
    "DEFAULT_THROTTLE_CLASSES": [],
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "URL_FORMAT_OVERRIDE": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Memory governance platform",
    "DESCRIPTION": "Retrieval that is recorded, fed back, evaluated and governed.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    # Choices stay where they are used: pydantic models name their own parts.
    "POSTPROCESSING_HOOKS": [],
    "PREPROCESSING_HOOKS": ["apps.core.openapi.only_api"],
    "SCHEMA_PATH_PREFIX": r"/v1/",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENFORCE_NON_BLANK_FIELDS": True,
}
