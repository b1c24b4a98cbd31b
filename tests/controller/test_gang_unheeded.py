"""What a gang would like and nobody heeds is looked up once, and anew when it may be another."""

import msgspec

from api import names
from api.jsons import JsonObject
from controller.gangs.topologies import BUILT_IN, Network
from tests.support.gangscene import KEY, Scene, gang_of, scene

HALL = Network("hall", {"hall": "example.com/hall"})


def wishing(word: str, version: int) -> bytes:
    body: JsonObject = gang_of("demo-0", ["a-0"], version)
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    annotations: JsonObject = {names.SPREAD_ANNOTATION: word}
    return msgspec.json.encode({**body, "metadata": {**metadata, "annotations": annotations}})


def said(s: Scene) -> str:
    view = s.world.view(KEY)
    assert view is not None
    return s.world.unheeded(view.gang)


async def test_it_is_another_when_the_gang_or_the_topologies_are() -> None:
    async with scene() as (s, _, _):
        s.gangs.observe(wishing("hall", 3))
        assert "no level hall" in said(s)
        assert said(s) == said(s)
        s.world.topologies.networks = (BUILT_IN, HALL)
        assert said(s) == ""
        s.gangs.observe(wishing("floor", 4))
        assert "no level floor" in said(s)
