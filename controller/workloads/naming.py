"""Names of everything made for a set: exactly Grove's, so that tools and scripts keep working."""

import hashlib
from typing import Final

# What Kubernetes uses for random suffixes: no vowels and no look-alikes.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5


def base_gang(set_name: str, replica: int) -> str:
    """Name the gang of a set's replica; also its headless service's name."""
    return f"{set_name}-{replica}"


def scaling_group(set_name: str, replica: int, group: str) -> str:
    """Name a scaling group of a set's replica."""
    return f"{set_name}-{replica}-{group}"


def scaled_gang(set_name: str, replica: int, group: str, ordinal: int) -> str:
    """Name the gang of a group's copy beyond its minimum, counted from 0."""
    return f"{scaling_group(set_name, replica, group)}-{ordinal}"


def clique(set_name: str, replica: int, name: str) -> str:
    """Name a clique that stands by itself."""
    return f"{set_name}-{replica}-{name}"


def grouped_clique(set_name: str, replica: int, group: str, copy: int, name: str) -> str:
    """Name a clique inside a copy of a scaling group."""
    return f"{scaling_group(set_name, replica, group)}-{copy}-{name}"


def pod(set_uid: str, clique_name: str, index: int) -> str:
    """Name a pod: Grove's form, with a suffix that follows from the slot instead of chance.

    The same slot always gets the same name, so making a pod twice is refused by the API server and
    a replacement waits until its predecessor is gone: no two pods share a hostname.
    """
    digest = hashlib.sha256(f"{set_uid}/{clique_name}/{index}".encode()).digest()
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_SUFFIX])
    return f"{clique_name}-{suffix}"


def hostname(clique_name: str, index: int) -> str:
    """Name the pod's host, by which its peers find it."""
    return f"{clique_name}-{index}"
