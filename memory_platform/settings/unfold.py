"""The staff pages' frame: colours as tokens, navigation and search as callables."""

from typing import Any

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Memory governance",
    "SITE_HEADER": "Memory governance",
    "SITE_URL": None,
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "ENVIRONMENT": "memory_platform.admin_site.environment_badge",
    "BORDER_RADIUS": "6px",
    "COMMAND": {"search_models": False, "show_history": False},
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "show_all_applications": False,
        "navigation": "memory_platform.admin_site.navigation",
    },
    "COLORS": {
        "base": {
            "50": "#f6f7f9",
            "100": "#eceef2",
            "200": "#dfe3ea",
            "300": "#c6ccd6",
            "400": "#9aa4b4",
            "500": "#5b6372",
            "600": "#4a5261",
            "700": "#3f4654",
            "800": "#2a3342",
            "900": "#131821",
            "950": "#0f141b",
        },
        "primary": {
            "50": "#eff6fd",
            "100": "#e0eefb",
            "200": "#bfdcf6",
            "300": "#90c5fb",
            "400": "#4f9ce8",
            "500": "#2b7cd3",
            "600": "#0b4a8f",
            "700": "#093d77",
            "800": "#0a325f",
            "900": "#0c2b4e",
            "950": "#071a31",
        },
        "font": {
            "subtle-light": "var(--color-base-500)",
            "subtle-dark": "var(--color-base-400)",
            "default-light": "var(--color-base-700)",
            "default-dark": "var(--color-base-300)",
            "important-light": "var(--color-base-900)",
            "important-dark": "var(--color-base-100)",
        },
    },
}
