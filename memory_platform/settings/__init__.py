"""Settings, one module a feature; all values come from `memory_platform.environment`."""

from .base import *
from .database import *
