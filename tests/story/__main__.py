"""`make story`: somebody's first half hour with Penstock, typed for them, in a lab of its own.

Each step is printed with its output. It ends with 1 at the first one whose output lacks what it
must have. The lab is taken down in any case. Where there is a Chromium, pictures of the dashboard
are in build/story.
"""

import argparse
import fcntl
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from tests.repo import checkout
from tests.story import page
from tests.story.script import STORY
from tests.story.walking import StoryError, desk, walk, with_kubectl

BUILD = checkout.ROOT / "build" / "story"


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what this is for


def _stop(number: int, _: FrameType | None) -> None:
    # As Ctrl-C: the lab is taken down on the way out.
    raise KeyboardInterrupt(signal.strsignal(number))


def main(arguments: list[str]) -> int:
    """Walk the story; with --record, write the page from it."""
    parser = argparse.ArgumentParser(prog="make story", description=__doc__)
    parser.add_argument(
        "--record", action="store_true", help=f"write {page.FILE} from what is printed"
    )
    told = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another `make story` is at work in this clone: wait until it is done")
            return 1
        return _walked(record=told.record)


def _walked(*, record: bool) -> int:
    try:
        with desk(BUILD / "state", BUILD, os.environ) as made:
            with_kubectl(made)
            outputs = walk(STORY, made, _say)
    except StoryError as error:
        _say(f"\nthe story stops here: {error}")
        return 1
    except KeyboardInterrupt:
        _say("\ninterrupted; the lab was taken down")
        return 130
    if record:
        missing = [named for named in page.names() if named not in outputs]
        if missing:
            _say(f"\nnot recorded, since there is no Chromium: {missing}")
            return 1
        Path(checkout.ROOT / page.FILE).write_text(page.written(outputs), encoding="utf-8")
        _say(f"\n{page.FILE} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
