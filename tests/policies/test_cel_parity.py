"""Our CEL beside another: whatever both take means the same."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.cel import expression
from policies.cel.expression import Fails, Holds
from policies.cel.kinds import INT
from policies.cel.running import Meter
from tests.policies.cel_drawing import GIVEN, VALUES, truths

cel = pytest.importorskip("cel")


def theirs(text: str, values: dict[str, object]) -> bool | None:
    try:
        found = cel.compile(text).execute(values)
    except Exception:  # noqa: BLE001 - whichever it is, there is no value
        return None
    return found if isinstance(found, bool) else None


def ours(text: str, values: dict[str, object]) -> bool | None:
    verdict = expression.read(text, {**GIVEN, "x": INT}).ask(values, Meter())
    if isinstance(verdict, Holds | Fails):
        return isinstance(verdict, Holds)
    return None


@given(text=truths(1) | truths(2) | truths(3), values=VALUES, x=st.integers(-2, 2))
def test_what_both_take_means_the_same(text: str, values: dict[str, object], x: int) -> None:
    # The other counts bytes. CEL counts code points, as we do: see test_cel.
    assume("size(" not in text or str(values).isascii())
    known = {**values, "x": x}
    assert ours(text, known) == theirs(text, known), text
