"""Flags are checked before anything runs."""

import argparse

import pytest

from api import exits
from controller import settings


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("penstock-webhook.example.org", "penstock-webhook.example.org"),
    ],
)
def test_names_and_addresses_are_taken_for_the_certificate(given: str, taken: str) -> None:
    assert settings.host(given) == taken


@pytest.mark.parametrize(
    "given", ["127.0.0.1:9443", "https://host", "höst", "a..b", "-a", "a_b", "", "a" * 64]
)
def test_what_is_no_host_is_refused_before_a_certificate_is_made_for_it(given: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="neither a DNS name nor an IP address"):
        settings.host(given)


def test_the_lease_keeps_its_proportions() -> None:
    made = settings.parser("controller.gangs", "about", "example")
    lease = settings.parse(made, ["--lease", "30"]).lease
    assert (lease.lease_seconds, lease.renew_deadline, lease.retry_seconds) == (30, 20, 4)


@pytest.mark.parametrize("arguments", [["--wait", "soon"], ["--lease", "0"], ["--what"]])
def test_a_bad_flag_is_named_and_ends_the_process(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    made = settings.parser("controller.gangs", "about", "example")
    with pytest.raises(SystemExit) as ended:
        settings.parse(made, arguments)
    assert ended.value.code == exits.BAD_SETTINGS
    assert arguments[0] in capsys.readouterr().err
