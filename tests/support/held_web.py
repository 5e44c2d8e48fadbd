"""The web application; while there is a folder MEMORY_TEST_HOLD, a search stops once its answer is made and before
its first byte is sent. The process that stands there leaves a file in it, named by its id."""

import os
import time
from pathlib import Path
from typing import Any

from memory_platform.wsgi import application as served

HOLD = Path(os.environ["MEMORY_TEST_HOLD"])


def application(environ: dict[str, Any], start_response: Any) -> Any:
    answer = served(environ, start_response)
    if environ["PATH_INFO"] == "/v1/search" and HOLD.exists():
        (HOLD / str(os.getpid())).touch()
        while HOLD.exists():
            time.sleep(0.05)
    return answer
