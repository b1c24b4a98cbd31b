"""A few runs of what `make chaos` makes hundreds of."""

from pathlib import Path

import pytest

from tests.chaos.mutations import EXPECTED
from tests.chaos.results import Done
from tests.chaos.running import Script, run
from tests.chaos.stage import staged
from tests.support.installed import Installed

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]


@pytest.mark.parametrize(
    ("seed", "fault", "done"),
    [
        (11, "late-write", Done.LATE),
        pytest.param(12, "kill-gangs", Done.KILL_GANGS, marks=pytest.mark.long),
        pytest.param(13, "lose-node", Done.NODE, marks=pytest.mark.long),
        pytest.param(14, "pause-leader", Done.PAUSED, marks=pytest.mark.long),
    ],
)
async def test_a_short_run_leaves_nothing_to_find(
    seed: int, fault: str, done: Done, installed: Installed, tmp_path: Path
) -> None:
    async with staged(installed.lab, installed.installation, tmp_path) as stage:
        result = await run(stage, Script(seed, (fault,), sets=2, acts=2, folder=tmp_path))
        # How long it takes is for `make chaos` to judge: here others may want the machine too.
        wrong = [each for each in result.findings if each.rule != "converged"]
        assert (result.trouble, wrong) == ("", [])
        assert result.figures["lifts"] > 0
        # A fault that does not come about leaves nothing to find either.
        assert result.done.get(str(done), 0) > 0


@pytest.mark.long
async def test_what_is_forbidden_is_found_when_it_is_done(
    installed: Installed, tmp_path: Path
) -> None:
    """Else runs without findings would say nothing."""
    async with staged(installed.lab, installed.installation, tmp_path) as stage:
        for seed, (mutation, rule) in enumerate(EXPECTED.items()):
            script = Script(
                seed, (), sets=2, acts=0, mutation=mutation, folder=tmp_path, at_rest=False
            )
            result = await run(stage, script)
            assert result.trouble == ""
            assert rule in {finding.rule for finding in result.findings}, mutation
