"""The first reviews of a process come many at once: no thread may race another to begin."""

import subprocess
import sys
from typing import Final

# What msgspec knows of a type it finds out at first use, in Python code that lets other threads in
# half way; and who meets a type half known ends the process. A process of its own, since what
# another test has used is known already.
PROGRAM: Final = """
import sys
from policies.known import NOTHING
from policies.policy import BUILT_IN
from tests.bench.webhook_reviews import BY_ROUTE
from webhook.answering import Answering, Span
from webhook.metrics import Metrics
from webhook.routes import PATHS

late = []

def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.endswith("msgspec/_utils.py"):
        late.append(f"{frame.f_code.co_name} of {frame.f_locals.get('obj')}")

answering = Answering(lambda: BUILT_IN, NOTHING, Metrics(PATHS), lambda: 0.0)
sys.setprofile(note)
for path, body in BY_ROUTE.items():
    assert b'"allowed":true' in answering.answer(PATHS[path], body, Span(0.0, 9.0)).body
sys.setprofile(None)
assert not late, late
"""


def test_all_that_reviews_are_read_by_is_known_before_the_first() -> None:
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
