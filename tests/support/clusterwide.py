"""Objects of the whole cluster, for as long as a test needs them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

from kube.client import Client
from kube.errors import NotFound
from kube.resources import Resource

Made: TypeAlias = tuple[Resource, str, Mapping[str, object]]
"""Which kind, by which name, and all of it but its head."""


@asynccontextmanager
async def there(client: Client, *made: Made) -> AsyncIterator[None]:
    """Make objects that are gone afterwards."""
    try:
        for kind, name, rest in made:
            head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
            await client.create(kind, {**head, **rest})
        yield
    finally:
        for kind, name, _ in reversed(made):
            try:
                await client.delete(kind, name)
            except NotFound:
                continue
