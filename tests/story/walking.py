"""Walks the story: types each command in a shell, and looks whether it says what it must."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kube.clock import SystemClock
from tests.repo import checkout
from tests.story import page
from tests.story.looking import look
from tests.story.script import LAB, Act, Looked, Served, Step, Typed
from tests.story.stable import Places, is_shown, stable

COLUMNS = 100
PATIENCE = 60.0  # seconds, until what is asked again says what it must
LONGEST = 1800.0  # seconds that a command may take: the first one may have to build a control plane
POLL = 0.5
BIN = Path(sys.executable).parent
# These would lead the commands elsewhere, or have make say more than it does to a person.
FOREIGN = ("KUBECONFIG", "LAB", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "NO_COLOR")

Say = Callable[[str], None]


class StoryError(Exception):
    """A step did not come to what it should; the message shows what it came to."""


@dataclass
class Desk:
    """A person's shell in the clone, and the terminal beside it."""

    environment: dict[str, str]
    state: Path
    pictures: Path
    folder: Path = checkout.ROOT
    outputs: dict[str, str] = field(default_factory=dict)
    acts: list[str] = field(default_factory=list)
    url: str = ""
    aside: subprocess.Popen[str] | None = None

    @property
    def places(self) -> Places:
        return Places(checkout.ROOT, self.state)

    def types(self, command: str) -> tuple[int, str]:
        """Type a command; gives its code and all that is shown."""
        if command.startswith("export "):
            return self._sets(command)
        process = self._begins(command)
        with process:
            try:
                shown, _ = process.communicate(timeout=LONGEST)
            except BaseException:
                _end(process)
                raise
        return process.returncode, shown

    def _begins(self, command: str) -> subprocess.Popen[str]:
        # In a session of its own, so that all it started can be ended with it.
        return subprocess.Popen(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip

    def _sets(self, command: str) -> tuple[int, str]:
        """Have what is exported hold for the commands after it."""
        done = subprocess.run(
            ["bash", "-ec", f"{command}\nenv -0"], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
        if done.returncode == 0:
            pairs = (each.partition("=") for each in done.stdout.split("\0") if each)
            self.environment = {name: value for name, _, value in pairs}
        return done.returncode, done.stderr

    def serves(self, command: str) -> str:
        """Start it in a terminal of its own; gives what it says until it says where it serves."""
        self.aside = self._begins(command)
        assert self.aside.stdout is not None
        said = ""
        for line in self.aside.stdout:
            said += line
            found = re.search(r"http://\S+/", line)
            if found:
                self.url = found[0]
                return said
        raise StoryError(f"{command}: it serves nowhere; it said:\n{said}")

    def leaves(self) -> None:
        """End what still serves."""
        # Not by what Ctrl-C sends: a job in the background, and all it starts, does not hear it.
        if self.aside is not None:
            _end(self.aside)
            if self.aside.stdout is not None:
                self.aside.stdout.close()


def _end(process: subprocess.Popen[str]) -> None:
    """End a command with all it started in its terminal."""
    for number, patience in ((signal.SIGTERM, 30.0), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        return


@contextmanager
def desk(state: Path, pictures: Path, environ: Mapping[str, str]) -> Iterator[Desk]:
    """A shell whose labs are in a folder of their own; all of it is taken down in any case."""
    environment = {name: value for name, value in environ.items() if name not in FOREIGN}
    path = [each for each in environ.get("PATH", os.defpath).split(os.pathsep) if Path(each) != BIN]
    environment |= {
        "PATH": os.pathsep.join(path), "XDG_STATE_HOME": str(state), "COLUMNS": str(COLUMNS),
    }  # fmt: skip
    made = Desk(environment, state, pictures)
    _down(made.state, environment)  # what a story that was killed has left
    try:
        yield made
    finally:
        made.leaves()
        _down(made.state, environment)


def _down(state: Path, environment: Mapping[str, str]) -> None:
    if not (state / "penstock" / "labs" / LAB).exists():
        return
    subprocess.run(
        [BIN / "penstock", "lab", "down", "--name", LAB], env=environment, check=True,
        stdout=subprocess.DEVNULL, timeout=120,
    )  # fmt: skip


def with_kubectl(made: Desk) -> None:
    """Give who has no kubectl the lab's own."""
    if shutil.which("kubectl", path=made.environment["PATH"]):
        return
    found = subprocess.run(
        [BIN / "penstock", "lab", "binaries"], env=made.environment, check=True, text=True,
        stdout=subprocess.PIPE, timeout=LONGEST,
    ).stdout  # fmt: skip
    kubectl = next(line.split()[1] for line in found.splitlines() if line.startswith("kubectl "))
    made.environment["PATH"] += f"{os.pathsep}{Path(kubectl).parent}"


def walk(steps: tuple[Step, ...], made: Desk, say: Say) -> dict[str, str]:
    """Go through the steps, saying each; returns what was shown, by act, made stable.

    Without a browser there is nothing of the parts of the page. Raises StoryError at the first
    act that does not come to what it should.
    """
    for number, step in enumerate(steps, 1):
        say(f"\n== {number}. {step.title}\n{step.why}\n")
        for act in step.acts:
            named = page.numbered(page.name(act), made.acts)
            made.acts.append(named)
            shown = _done(act, made, say)
            if shown is not None:
                made.outputs[named] = stable(shown, made.places)
    return made.outputs


def _done(act: Act, made: Desk, say: Say) -> str | None:
    if isinstance(act, Looked):
        say(f"the dashboard's page, {act.heading}:")
        try:
            shown = asyncio.run(look(made.url, act, made.pictures / f"{act.heading.lower()}.png"))
        except (AssertionError, TimeoutError) as error:
            raise StoryError(f"the dashboard does not show {act.says}: {error}") from error
        say(shown if shown is not None else "(no Chromium: only what it is fed from was read)")
        return shown
    say(f"$ {act.command}")
    shown = made.serves(act.command) if isinstance(act, Served) else _typed(act, made, say)
    if isinstance(act, Served):
        say(shown.rstrip("\n"))
        _check(act, 0, shown, made.places)
    return shown


def _typed(act: Typed, made: Desk, say: Say) -> str:
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE
    code, shown = made.types(act.command)
    while (
        _needs_time(act, shown)
        and _lacks(act, code, shown, made.places)
        and clock.monotonic() < deadline
    ):
        time.sleep(POLL)
        code, shown = made.types(act.command)
    say(shown.rstrip("\n"))
    _check(act, code, shown, made.places)
    return shown


def _needs_time(act: Typed, shown: str) -> bool:
    return act.asks or (act.early and "not found" in shown)


def _check(act: Typed | Served, code: int, shown: str, places: Places) -> None:
    lacks = _lacks(act, code, shown, places)
    if lacks:
        raise StoryError(f"{act.command}: {lacks}; it said:\n{shown}")


def _lacks(act: Typed | Served, code: int, shown: str, places: Places) -> str:
    """Say what is wrong with an outcome. Long sentences may be broken over lines and cells."""
    wanted = act.code if isinstance(act, Typed) else 0
    if code != wanted:
        return f"it ended with {code} instead of {wanted}"
    plain = " ".join(shown.split())
    missing = [words for words in act.says if " ".join(words.split()) not in plain]
    if missing:
        return f"it lacks {missing}"
    page = stable(act.shows, places) if isinstance(act, Typed) else ""
    return f"not as shown:\n{page}\n" if page and not is_shown(page, stable(shown, places)) else ""
