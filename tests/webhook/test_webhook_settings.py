from pathlib import Path

import pytest

from api import exits
from webhook import settings


def test_flags_become_settings_with_defaults() -> None:
    parsed = settings.parse(["--tls-dir", "/tls", "--port", "0", "--drain-seconds", "0.5"])
    assert parsed == settings.Settings(
        host="0.0.0.0",  # noqa: S104
        port=0,
        tls_dir=Path("/tls"),
        tls_wait=60.0,
        threads=16,
        drain_seconds=0.5,
        log_level="info",
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "--tls-dir"),
        (["--port", "65536"], "--port: must be a number from 0 to 65535, got '65536'"),
        (["--port", "-1"], "--port"),
        (["--port", "https"], "--port"),
        (["--port", "²"], "--port"),
        (["--threads", "0"], "--threads: must be a number from 1 to 256"),
        (["--tls-wait", "-1"], "--tls-wait: must be seconds from 0 to 3600, got '-1'"),
        (["--tls-wait", "nan"], "--tls-wait"),
        (["--drain-seconds", "inf"], "--drain-seconds"),
        (["--drain-seconds", "soon"], "--drain-seconds"),
        (["--log-level", "loud"], "--log-level"),
        (["--colour"], "--colour"),
    ],
)
def test_a_bad_flag_ends_with_one_line_that_names_it(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--tls-dir", "tls", *arguments] if arguments else []
    with pytest.raises(SystemExit) as ended:
        settings.parse(given)
    written = capsys.readouterr().err
    assert ended.value.code == exits.BAD_SETTINGS
    assert named in written
    assert written.count("\n") == 1


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        settings.parse(["--help"])
    assert ended.value.code == exits.OK
    assert "python -m webhook --port 9443 --tls-dir" in capsys.readouterr().out
