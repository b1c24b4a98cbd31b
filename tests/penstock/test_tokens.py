import base64
import json

import pytest

from api.jsons import Json
from penstock.lab import tokens


def a_token(issued: float, expires: float) -> str:
    claims = json.dumps({"iat": issued, "exp": expires, "sub": "x"}).encode()
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.signature"


@pytest.mark.parametrize(
    ("now", "due"),
    [
        pytest.param(1000, False, id="just issued"),
        pytest.param(1000 + 2399, False, id="before two thirds"),
        pytest.param(1000 + 2400, True, id="at two thirds"),
        pytest.param(1000 + 9000, True, id="long expired"),
        pytest.param(1000 - 59, False, id="the clocks differ a little"),
        pytest.param(1000 - 600, True, id="the clock was set back"),
    ],
)
def test_a_token_is_renewed_at_two_thirds_of_its_life(now: float, due: bool) -> None:  # noqa: FBT001
    token = tokens.parse(a_token(1000, 1000 + 3600))
    assert token is not None
    assert tokens.due(token, now) is due


@pytest.mark.parametrize("text", ["", "abc", "a.b.c", "e30.e30.x", "e30.!!!!.x", "e30.4pyT.x"])
def test_what_is_no_token_is_replaced(text: str) -> None:
    assert tokens.parse(text) is None
    assert tokens.due(None, 0)


def test_the_answer_to_a_request_holds_the_token() -> None:
    assert tokens.answer({"status": {"token": "t"}}) == "t"


@pytest.mark.parametrize("body", [None, [], {}, {"status": None}, {"status": {"token": ""}}])
def test_an_answer_without_a_token_is_an_error(body: Json) -> None:
    with pytest.raises(ValueError, match="without a token"):
        tokens.answer(body)
