"""Names of everything made for a set: exactly Grove's, so that tools and scripts keep working."""

import hashlib
from functools import lru_cache
from typing import Final

# What Kubernetes uses for random suffixes: no vowels and no look-alikes.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5
_SUFFIXES: Final = len(_ALPHABET) ** _SUFFIX


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
    factor, start = _spread(set_uid, clique_name)
    number = (start + factor * index) % _SUFFIXES
    suffix = ""
    for _ in range(_SUFFIX):
        number, digit = divmod(number, len(_ALPHABET))
        suffix += _ALPHABET[digit]
    return f"{clique_name}-{suffix}"


@lru_cache(maxsize=65536)
def _spread(set_uid: str, clique_name: str) -> tuple[int, int]:
    """Choose how the slots of a clique spread over the suffixes, no two of them to one."""
    digest = hashlib.sha256(f"{set_uid}/{clique_name}".encode()).digest()
    # The number of suffixes is a power of 3: what is no multiple of 3 meets each one once.
    factor = int.from_bytes(digest[:8], "big") // 3 * 3 + 1
    return factor % _SUFFIXES, int.from_bytes(digest[8:16], "big")


def hostname(clique_name: str, index: int) -> str:
    """Name the pod's host, by which its peers find it."""
    return f"{clique_name}-{index}"


def waiter_role(set_name: str) -> str:
    """Name the Role, and its binding, that lets the set's waiters read pods."""
    return f"grove.io:pcs:{set_name}"


def waiter_account(set_name: str) -> str:
    """Name the ServiceAccount that the set's waiters speak as."""
    return set_name


def waiter_token(set_name: str) -> str:
    """Name the Secret with that account's token."""
    return f"{set_name}-ic-sat"


def claim_for_all(owner: str, template: str) -> str:
    """Name the claim that all replicas of an owner, named in full, share."""
    return f"{owner}-all-{template}"


def claim_for_one(owner: str, index: int, template: str) -> str:
    """Name the claim of one replica of an owner, named in full."""
    return f"{owner}-{index}-{template}"


def compute_domain(set_name: str, replica: int, group: str) -> str:
    """Name a set's replica's ComputeDomain, and the claim template made for it."""
    return f"{set_name}-{replica}-{group}"
