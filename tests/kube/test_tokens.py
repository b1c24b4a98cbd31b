import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from kube.errors import BadCredentials
from kube.tokens import ExecToken, FileToken, FixedHeader, PluginToken
from tests.support.manualclock import START, ManualClock


async def test_a_fixed_header_has_no_other() -> None:
    assert await FixedHeader("Basic x").authorization() == "Basic x"
    assert await FixedHeader().authorization() is None
    assert not FixedHeader("Basic x").refused()


async def test_a_token_file_is_read_again_after_a_minute_and_not_before(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "token"
    path.write_text("one\n")
    tokens = FileToken(path, clock)
    assert await tokens.authorization() == "Bearer one"
    path.write_text("two")
    await clock.advance(59)
    assert await tokens.authorization() == "Bearer one"
    await clock.advance(1)
    assert await tokens.authorization() == "Bearer two"


async def test_a_token_file_is_read_again_at_once_after_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    tokens = FileToken(path, ManualClock())
    await tokens.authorization()
    path.write_text("two")
    assert tokens.refused()
    assert await tokens.authorization() == "Bearer two"


async def test_a_token_file_missing_for_a_moment_leaves_the_last_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    tokens = FileToken(path, ManualClock())
    await tokens.authorization()
    path.unlink()
    tokens.refused()
    assert await tokens.authorization() == "Bearer one"
    assert "the last token stays in use" in caplog.text
    path.write_text("two")
    assert await tokens.authorization() == "Bearer two"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "there is no such file"),
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"\xff\xfe", "can't decode"),
    ],
)
async def test_a_token_file_of_no_use_is_named(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadCredentials, match=problem) as caught:
        await FileToken(path, ManualClock()).authorization()
    assert str(path) in str(caught.value)


class Plugin:
    def __init__(self) -> None:
        self.runs = 0

    def __call__(self) -> PluginToken:
        self.runs += 1
        return PluginToken(f"run{self.runs}", None)


async def test_a_plugins_token_is_renewed_shortly_before_it_ends() -> None:
    clock, plugin = ManualClock(), Plugin()
    tokens = ExecToken(PluginToken("first", START + timedelta(seconds=300)), plugin, clock)
    assert await tokens.authorization() == "Bearer first"
    await clock.advance(241)
    assert await tokens.authorization() == "Bearer run1"
    await clock.advance(10_000)
    assert await tokens.authorization() == "Bearer run1"


async def test_a_refused_plugin_token_is_asked_for_once_however_many_wait() -> None:
    plugin = Plugin()
    tokens = ExecToken(PluginToken("first", None), plugin, ManualClock())
    assert tokens.refused()
    headers = await asyncio.gather(*(tokens.authorization() for _ in range(5)))
    assert headers == ["Bearer run1"] * 5
