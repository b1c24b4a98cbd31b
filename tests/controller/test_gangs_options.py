import argparse
from datetime import timedelta
from pathlib import Path

import pytest

from certs.rotation import Waits
from controller import settings
from controller.gangs import options
from controller.gangs.options import Certificates, Keep, Leave
from controller.gangs.replicas import ListedReplicas, ServiceReplicas
from tests.support.talking import talking


def read(*arguments: str) -> Certificates:
    parser = settings.parser("controller.gangs", "about", "example")
    options.add(parser)
    return options.read(parser.parse_args(arguments))


def test_certificates_are_ours_to_keep_with_the_waits_that_are_documented() -> None:
    waits = Waits(timedelta(seconds=60), timedelta(days=1))
    assert read() == Keep("penstock-system", (), None, waits)


def test_names_and_waits_are_taken() -> None:
    given = read(
        *("--webhook-host", "127.0.0.1", "--webhook-host", "webhook.example"),
        *("--trust-wait", "0", "--retire-after", "86400.5", "--webhook-addresses", "/a/b"),
    )
    waits = Waits(timedelta(0), timedelta(seconds=86400.5))
    assert given == Keep("penstock-system", ("127.0.0.1", "webhook.example"), Path("/a/b"), waits)


def test_with_cert_manager_they_are_left_alone() -> None:
    assert read("--certificates", "cert-manager") == Leave()


@pytest.mark.parametrize("flag", ["--trust-wait", "--retire-after"])
@pytest.mark.parametrize("text", ["-1", "soon", "nan", "inf", "2592001"])
def test_a_wait_that_is_none_is_refused_by_name(
    flag: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read(f"{flag}={text}")
    assert flag in capsys.readouterr().err


def test_who_issues_them_is_one_of_two() -> None:
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        read("--certificates", "somebody")


async def test_replicas_are_the_services_endpoints_unless_a_file_lists_them() -> None:
    async with talking() as t:
        ours, listed = read(), read("--webhook-addresses", "/a/b")
        assert isinstance(ours, Keep)
        assert isinstance(listed, Keep)
        assert isinstance(ours.care_with(t.client).replicas, ServiceReplicas)
        assert isinstance(listed.care_with(t.client).replicas, ListedReplicas)
        assert "penstock-webhook.penstock-system.svc" in ours.care_with(t.client).wanted.dns
