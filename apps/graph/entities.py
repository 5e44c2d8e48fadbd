"""Keys of entities: which spellings name one subject."""

import re
import unicodedata

MIN_KEY, MAX_KEY = 2, 120

# A number at the end, after a blank, as of `Vue 3` or `Python v2.1`.
_VERSION = re.compile(r"\s+v?\d+(?:\.\d+)*$")
_SUFFIX = "js"


def entity_key(name: str) -> str | None:
    """The key of a name: letters and digits alone, without marks, version and a trailing `js`.

    None where fewer than 2 or more than 120 characters are left. Express is Express.js, Vue is Vue 3, Myria Labs
    is MyriaLabs; Docker is not Docker Compose.
    """
    decomposed = unicodedata.normalize("NFKD", name)
    bare = "".join(c for c in decomposed if not unicodedata.combining(c)).lower().strip()
    key = "".join(c for c in _VERSION.sub("", bare) if c.isalnum())
    if key.endswith(_SUFFIX) and len(key) >= len(_SUFFIX) + MIN_KEY:
        key = key.removesuffix(_SUFFIX)
    return key if MIN_KEY <= len(key) <= MAX_KEY else None
