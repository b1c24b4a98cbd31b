"""Ports that nobody listens on."""

import socket


def free_port() -> int:
    """Ask the operating system for a port; it is free again when this returns."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
    return port
