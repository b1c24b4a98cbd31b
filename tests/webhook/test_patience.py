import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.webhook.running import HOST, files_in
from webhook import patience, tls
from webhook.patience import Crowd, PatientSocket


class Hands:
    """A clock whose hands the test turns."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[PatientSocket, ssl.SSLSocket]]:
    """A server's and a client's end of one connection."""
    files = files_in(tmp_path / "tls")
    files.issue()
    context = tls.load(files.folder, PatientSocket)
    assert isinstance(context, ssl.SSLContext)
    ours, theirs = socket.socketpair()
    served: list[ssl.SSLSocket] = []
    thread = threading.Thread(
        target=lambda: served.append(context.wrap_socket(ours, server_side=True))
    )
    thread.start()
    client = files.client().wrap_socket(theirs, server_hostname=HOST)
    thread.join()
    assert isinstance(served[0], PatientSocket)
    yield served[0], client
    client.close()
    served[0].close()


def test_what_arrives_in_time_is_read(ends: tuple[PatientSocket, ssl.SSLSocket]) -> None:
    server, client = ends
    server.expect_request(Hands(), Crowd(16))
    client.sendall(b"hello")
    assert server.recv(100) == b"hello"


def test_a_trickle_ends_when_the_whole_takes_too_long(
    ends: tuple[PatientSocket, ssl.SSLSocket],
) -> None:
    server, client = ends
    hands = Hands()
    server.expect_request(hands, Crowd(16))
    for _ in range(3):
        client.sendall(b"x")
        assert server.recv(1) == b"x"
        hands.seconds += patience.WHOLE / 3 - 0.01
    client.sendall(b"x")
    assert server.recv(1) == b"x"
    hands.seconds += 1
    client.sendall(b"x")
    with pytest.raises(ConnectionResetError, match="too long"):
        server.recv(1)


def test_silence_ends_the_wait(ends: tuple[PatientSocket, ssl.SSLSocket]) -> None:
    server, _ = ends
    hands = Hands()
    server.expect_request(hands, Crowd(16))
    hands.seconds += patience.WHOLE - 0.05
    with pytest.raises(ConnectionResetError, match="too long"):
        server.recv(1)
    assert server.gettimeout() == pytest.approx(0.05)


def crowded(threads: int) -> Crowd:
    """As many others waited for as there is patience for."""
    crowd = Crowd(threads)
    others = [object() for _ in range(max(1, threads // 2))]
    for other in others:
        crowd.enter(other, Hands().seconds - 2 * patience.NO_STALL)
    return crowd


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_silence_ends_sooner_while_many_are_waited_for(
    threads: int, ends: tuple[PatientSocket, ssl.SSLSocket]
) -> None:
    server, client = ends
    server.expect_request(Hands(), crowded(threads))
    client.sendall(b"x")
    assert server.recv(1) == b"x"
    assert server.gettimeout() == patience.SHORT_SILENCE


def test_silence_ends_no_sooner_while_many_only_send(
    ends: tuple[PatientSocket, ssl.SSLSocket],
) -> None:
    server, client = ends
    crowd = Crowd(2)
    crowd.enter(object(), Hands().seconds)
    server.expect_request(Hands(), crowd)
    client.sendall(b"x")
    assert server.recv(1) == b"x"
    assert server.gettimeout() == patience.SILENCE


def test_a_trickle_ends_sooner_while_many_are_waited_for(
    ends: tuple[PatientSocket, ssl.SSLSocket],
) -> None:
    server, client = ends
    hands, crowd = Hands(), Crowd(2)
    server.expect_request(hands, crowd)
    hands.seconds += patience.SHORT_WHOLE
    client.sendall(b"xx")
    assert server.recv(1) == b"x"
    crowd.enter(client, hands.seconds - 2 * patience.NO_STALL)
    with pytest.raises(ConnectionResetError, match="too long"):
        server.recv(1)
    crowd.leave(client)
    assert server.recv(1) == b"x"


def test_nobody_is_waited_for_once_it_has_spoken_or_been_given_up(
    ends: tuple[PatientSocket, ssl.SSLSocket],
) -> None:
    server, client = ends
    hands, crowd = Hands(), Crowd(1)
    server.expect_request(hands, crowd)
    client.sendall(b"x")
    assert server.recv(1) == b"x"
    assert not crowd.presses(hands.seconds + 1)
    hands.seconds += patience.WHOLE - 0.05
    with pytest.raises(ConnectionResetError, match="too long"):
        server.recv(1)
    assert not crowd.presses(hands.seconds + 1)


def test_what_is_held_leaves_with_what_comes_next(
    ends: tuple[PatientSocket, ssl.SSLSocket],
) -> None:
    server, client = ends
    client.settimeout(5)
    server.hold()
    server.sendall(b"head ")
    server.sendall(b"body")
    # One read gives no more than one TLS record.
    assert client.recv(100) == b"head body"
    server.sendall(b"next")
    assert client.recv(100) == b"next"


def test_each_request_has_its_own_limit(ends: tuple[PatientSocket, ssl.SSLSocket]) -> None:
    server, client = ends
    hands = Hands()
    server.expect_request(hands, Crowd(16))
    hands.seconds += 500
    server.expect_request(hands, Crowd(16))
    client.sendall(b"x")
    assert server.recv(1) == b"x"
    assert server.gettimeout() == patience.SILENCE


def test_a_socket_about_to_close_keeps_its_callers_time_out(
    ends: tuple[PatientSocket, ssl.SSLSocket],
) -> None:
    server, _ = ends
    server.expect_request(Hands(), Crowd(16))
    server.expect_nothing()
    server.settimeout(0.01)
    with pytest.raises(ConnectionResetError):
        server.recv(1)
    assert server.gettimeout() == 0.01
