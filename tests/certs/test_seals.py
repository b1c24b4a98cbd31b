import pytest

from certs import seals
from certs.seals import Signer

SECRET = b"0123456789abcdef" * 2


def test_one_secret_always_gives_the_same_keys_and_another_gives_others() -> None:
    assert Signer.of(SECRET).public == Signer.of(SECRET).public
    assert Signer.of(SECRET).public != Signer.of(SECRET[::-1]).public
    assert seals.tag_key(SECRET) == seals.tag_key(SECRET) != seals.tag_key(SECRET[::-1])
    assert seals.tag_key(SECRET).hex() != Signer.of(SECRET).private.private_bytes_raw().hex()


def test_a_signature_is_of_one_text_by_one_key() -> None:
    signer = Signer.of(SECRET)
    signature = signer.sign(b"text")
    assert seals.is_signed(signer.public, signature, b"text")
    assert not seals.is_signed(signer.public, signature, b"Text")
    assert not seals.is_signed(Signer.of(SECRET[::-1]).public, signature, b"text")


@pytest.mark.parametrize("odd", ["", "zz", "00", "é" * 64])
def test_what_is_no_key_and_no_signature_signs_nothing(odd: str) -> None:
    signer = Signer.of(SECRET)
    assert not seals.is_signed(odd, signer.sign(b"text"), b"text")
    assert not seals.is_signed(signer.public, odd, b"text")
