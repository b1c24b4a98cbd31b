"""By when a review must be answered: what the API server says it waits, less what the way takes."""

import re
from functools import lru_cache
from typing import Final

MARGIN: Final = 1.0
"""The API server rounds up to whole seconds, and the answer has to travel."""

SHORTEST: Final = 0.5
UNSAID: Final = 10.0
"""What the API server waits where a configuration does not say."""

LONGEST: Final = 30.0
_FORM: Final = re.compile(r"(?:^|&)timeout=(\d{1,6}(?:\.\d{1,6})?)s(?:&|$)", re.ASCII)


# A configuration says the same in every call; a query is no longer than gunicorn takes a line.
@lru_cache(maxsize=16)
def seconds(query: str) -> float:
    """Give the seconds there are to answer, by a URL's query (such as timeout=5s)."""
    found = _FORM.search(query)
    waits = min(float(found[1]), LONGEST) if found else UNSAID
    return max(waits - MARGIN, SHORTEST)
