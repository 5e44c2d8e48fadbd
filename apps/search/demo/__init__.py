"""The demo memory: a small invented team's pages, issues and talk, and what an application did with them.

Everything goes through the services that the API calls, so what it leaves is what a client would leave.
"""

from apps.search.demo.load import Loaded, load_demo

__all__ = ["Loaded", "load_demo"]
