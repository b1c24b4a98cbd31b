import pytest

from tests.repo import checkout

LONGEST = 400


def too_long(text: str) -> bool:
    return len(text.splitlines()) > LONGEST


def test_no_module_is_longer_than_400_lines() -> None:
    found = {
        checkout.shown(path): len(path.read_text().splitlines())
        for path in checkout.modules()
        if too_long(path.read_text())
    }
    assert found == {}, f"split these in two, each with one purpose: {found}"


def test_every_package_is_measured() -> None:
    measured = {checkout.shown(path).partition("/")[0] for path in checkout.modules()}
    assert {*checkout.PACKAGES, "tests"} <= measured


@pytest.mark.parametrize(("lines", "refused"), [(400, False), (401, True)])
def test_the_limit_itself_is_allowed(lines: int, refused: bool) -> None:  # noqa: FBT001
    assert too_long("x = 1\n" * lines) is refused
