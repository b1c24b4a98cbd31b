"""Tokens of ServiceAccounts as a kubelet gets them: by TokenRequest, renewed in good time."""

import base64
import binascii
from dataclasses import dataclass

import msgspec

from api.jsons import Json, JsonObject

COMPONENT_SECONDS = 3600
KUBELET_SECONDS = 24 * 3600
LIFE_BEFORE_RENEWAL = 2 / 3


class _Claims(msgspec.Struct):
    iat: float
    exp: float


@dataclass(frozen=True)
class Token:
    """A token and its life, in Unix seconds by the API server's clock."""

    text: str
    issued: float
    expires: float

    @property
    def renew_at(self) -> float:
        """Return the instant from which a new one should be asked for: two thirds of its life."""
        return self.issued + (self.expires - self.issued) * LIFE_BEFORE_RENEWAL


def parse(text: str) -> Token | None:
    """Read a token's life out of the token itself; None if it is not a JSON Web Token with one."""
    parts = text.strip().split(".")
    if len(parts) != 3:
        return None
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Claims)
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        return None
    return Token(text.strip(), claims.iat, claims.exp)


def due(token: Token | None, now: float) -> bool:
    """Tell whether to ask for a new token: there is none, or two thirds of its life are over.

    One issued in the future (the clock was set back) is due as well: its end cannot be trusted.
    """
    return token is None or now >= token.renew_at or token.issued > now + 60


def request(seconds: int) -> JsonObject:
    """Return the body of a TokenRequest for a token to the API server itself."""
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }


def answer(body: Json) -> str:
    """Take the token out of the answer to a TokenRequest; ValueError if there is none."""
    status = body.get("status") if isinstance(body, dict) else None
    token = status.get("token") if isinstance(status, dict) else None
    if not isinstance(token, str) or not token:
        raise ValueError("the API server answered a TokenRequest without a token")
    return token


def path(namespace: str, account: str) -> str:
    """Return where tokens of an account are asked for."""
    return f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
