"""Looks at the dashboard: at what it streams, and with a Chromium at the page itself."""

import asyncio
import os
import tempfile
from pathlib import Path

import aiohttp

from tests.story.script import Looked
from tests.support import chromium

PATIENCE = 60.0  # seconds


async def look(url: str, looked: Looked, picture: Path) -> str | None:
    """Wait until a part of the page says what it must, and give its text; None without a browser.

    Raises AssertionError or TimeoutError if it never does.
    """
    async with asyncio.timeout(PATIENCE):
        await _streamed(url, looked.says)
    program = chromium.binary()
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="penstock-story-") as profile:
        async with chromium.chromium(program, Path(profile)) as browser, browser.page() as page:
            await page.open(url)
            for words in looked.says:
                await page.says(looked.part, words)
            text = await page.text(looked.part)
            picture.parent.mkdir(parents=True, exist_ok=True)
            await page.shot(picture)
            assert page.complaints() == []
            assert [asked for asked in page.asked() if not asked.startswith(url)] == []
    return text


async def _streamed(url: str, words: tuple[str, ...]) -> None:
    """Read the stream that the page is fed from until all these words have come."""
    wanted = [word for word in words if not word.endswith(" pods")]  # which the page counts
    async with aiohttp.ClientSession() as session, session.get(url) as page:
        assert page.status == 200, f"{url}: {page.status}"
        async with session.get(f"{url}events") as stream:
            heard = ""
            async for chunk in stream.content.iter_any():
                heard += chunk.decode(errors="replace")
                if all(word in heard for word in wanted):
                    return
    raise AssertionError(
        f"the dashboard's stream ended without {wanted}{os.linesep}{heard[-2000:]}"
    )
