"""Settings, one module a feature; all values come from `memory_platform.environment`."""

from .accounts import *
from .api import *
from .background import *
from .base import *
from .database import *
from .logging import *
from .observations import *
from .operations import *
from .retrieval import *
from .security import *
from .static import *
from .unfold import *
