"""Devices are counted by node and class, less those that are given away."""

from collections.abc import Mapping

import msgspec
import pytest

from api.claims import DeviceClaim, DeviceClass, ResourceSlice
from api.jsons import Json, JsonObject
from api.quantities import Amounts
from scheduler.filters.devices import Asked, Devices
from tests.support.clusters import node

GPU, NIC = "gpu.example.com", "nic.example.com"
ANY = "device.driver == "


def device_class(name: str, *expressions: str) -> DeviceClass:
    selectors: Json = [{"cel": {"expression": each}} for each in expressions]
    return msgspec.convert(
        {"metadata": {"name": name}, "spec": {"selectors": selectors}}, DeviceClass
    )


def devices(count: int, **more: Json) -> list[Json]:
    return [{"name": f"d{i}", **more} for i in range(count)]


def slice_of(
    name: str, driver: str, there: list[Json], pool: Mapping[str, Json] | None = None, **where: Json
) -> ResourceSlice:
    told: JsonObject = {"name": name, "generation": 1, "resourceSliceCount": 1, **(pool or {})}
    spec: JsonObject = {"driver": driver, "pool": told, "devices": there, **where}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def on(name: str, driver: str, count: int, **more: Json) -> ResourceSlice:
    return slice_of(f"{name}-{driver}", driver, devices(count, **more), nodeName=name)


def known(*slices: ResourceSlice, classes: tuple[DeviceClass, ...] = ()) -> Devices:
    found = Devices()
    for each in classes or (
        device_class(GPU, f'device.driver == "{GPU}"'),
        device_class(NIC, f'device.driver == "{NIC}"'),
    ):
        found.put_class(each)
    for there in slices:
        found.put_slice(there)
    return found


def has(found: Devices, name: str = "n1", **labels: str) -> dict[str, int]:
    shelf = found.on(node(name, labels=labels))
    return {column.rpartition("/")[2]: count for column, count in shelf.has.items()}


def taken(found: Devices, name: str = "n1") -> dict[str, int]:
    shelf = found.on(node(name))
    return {column.rpartition("/")[2]: count for column, count in shelf.taken.items()}


def given(name: str, *results: JsonObject) -> DeviceClaim:
    allocation: JsonObject = {"devices": {"results": [*results]}}
    raw = {"metadata": {"name": name, "namespace": "x"}, "status": {"allocation": allocation}}
    return msgspec.convert(raw, DeviceClaim)


def result(device: str, driver: str = GPU, pool: str = f"n1-{GPU}", **more: Json) -> JsonObject:
    return {"driver": driver, "pool": pool, "device": device, **more}


def asked(found: Devices, *requests: JsonObject) -> Asked:
    spec: JsonObject = {"devices": {"requests": [*requests]}}
    claim = msgspec.convert({"metadata": {"name": "c"}, "spec": spec}, DeviceClaim)
    return found.asked(claim.spec)


def exactly(name: str, count: int = 1, **more: Json) -> JsonObject:
    return {"name": "r", "exactly": {"deviceClassName": name, "count": count, **more}}


def short(amounts: Amounts) -> dict[str, int]:
    return {column.rpartition("/")[2]: count for column, count in amounts.items()}


def test_each_node_has_the_devices_of_its_own_slices() -> None:
    found = known(on("n1", GPU, 4), on("n1", NIC, 2), on("n2", GPU, 8))
    assert has(found) == {GPU: 4, NIC: 2}
    assert has(found, "n2") == {GPU: 8}
    assert has(found, "n3") == {}


def test_what_claims_were_given_is_taken_until_they_go() -> None:
    found = known(on("n1", GPU, 4))
    found.put_claim(given("a", result("d0"), result("d1")))
    found.put_claim(given("b", result("d2"), result("d3", adminAccess=True)))
    assert taken(found) == {GPU: 3}
    found.put_claim(given("b"))
    assert taken(found) == {GPU: 2}
    found.drop_claim(("x", "a"))
    assert taken(found) == {}


def test_a_claim_may_be_known_before_the_devices_it_was_given() -> None:
    found = known()
    found.put_claim(given("a", result("d0")))
    assert taken(found) == {}
    found.put_slice(on("n1", GPU, 4))
    assert (has(found), taken(found)) == ({GPU: 4}, {GPU: 1})


def test_slices_follow_their_driver() -> None:
    found = known(on("n1", GPU, 4))
    found.put_slice(on("n1", GPU, 3))
    assert has(found) == {GPU: 3}
    found.drop_slice(f"n1-{GPU}")
    assert has(found) == {}


def test_classes_that_come_later_count_what_is_there() -> None:
    found = known(on("n1", GPU, 4, attributes={"type": {"string": "mig"}}))
    found.put_class(device_class("mig", f'device.attributes["{GPU}"].type == "mig"'))
    assert has(found) == {GPU: 4, "mig": 4}
    found.put_class(device_class("mig", f'device.attributes["{GPU}"].type == "none"'))
    assert has(found) == {GPU: 4}
    found.drop_class(GPU)
    assert has(found) == {}


def test_only_a_whole_pool_of_the_last_generation_counts() -> None:
    old = slice_of("a", GPU, devices(4), {"name": "p", "generation": 1}, nodeName="n1")
    one = slice_of(
        "b", GPU, devices(2), {"name": "p", "generation": 2, "resourceSliceCount": 2}, nodeName="n1"
    )
    more: list[Json] = [{"name": "e0"}]
    other = slice_of(
        "c", GPU, more, {"name": "p", "generation": 2, "resourceSliceCount": 2}, nodeName="n1"
    )
    found = known(old)
    assert has(found) == {GPU: 4}
    found.put_slice(one)
    assert has(found) == {}
    found.put_slice(other)
    assert has(found) == {GPU: 3}


@pytest.mark.parametrize(
    ("where", "reached"),
    [
        pytest.param({"allNodes": True}, True, id="all nodes"),
        pytest.param(
            {"nodeSelector": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]}},
            True, id="a rack",
        ),
        pytest.param(
            {"nodeSelector": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r2"]}]}]}},
            False, id="another rack",
        ),
        pytest.param({}, False, id="nobody"),
    ],
)  # fmt: skip
def test_devices_of_several_nodes_count_where_they_are_reached(
    where: dict[str, Json], *, reached: bool
) -> None:
    found = known(slice_of("s", GPU, devices(2), None, **where))
    assert has(found, rack="r1") == ({GPU: 2} if reached else {})
    assert found.changed() is None or not where


def test_devices_may_say_themselves_where_they_are() -> None:
    there: list[Json] = [{"name": "a", "nodeName": "n1"}, {"name": "b", "allNodes": True}]
    found = known(slice_of("s", GPU, there, None, perDeviceNodeSelection=True))
    assert (has(found), has(found, "n2")) == ({GPU: 2}, {GPU: 1})


def test_tainted_devices_do_not_count() -> None:
    for effect, count in (("NoSchedule", {}), ("NoExecute", {}), ("None", {GPU: 2})):
        taints: Json = [{"key": "broken", "effect": effect}]
        assert has(known(on("n1", GPU, 2, taints=taints))) == count


def test_nodes_are_named_once_when_their_devices_change() -> None:
    found = known(on("n1", GPU, 4), on("n2", GPU, 4))
    assert found.changed() == frozenset({"n1", "n2"})
    assert found.changed() == frozenset()
    found.put_claim(given("a", result("d0")))
    assert found.changed() == frozenset({"n1"})
    found.put_slice(on("n2", GPU, 5))
    assert found.changed() == frozenset({"n2"})


def test_a_claim_takes_as_many_devices_of_its_classes_as_it_asks_for() -> None:
    found = known(on("n1", GPU, 4), on("n1", NIC, 2))
    told = asked(found, exactly(GPU, 2), exactly(GPU), exactly(NIC))
    assert (short(told.takes), told.left, told.local) == ({GPU: 3, NIC: 1}, False, True)


def test_classes_of_the_same_devices_take_from_each_other() -> None:
    classes = (
        device_class("a", f'device.driver == "{GPU}"'),
        device_class("b", f"'{GPU}' == device.driver"),
        device_class("mig", f'device.attributes["{GPU}"].type == "mig"'),
    )
    plain, mig = on("n1", GPU, 2), on("n2", GPU, 2, attributes={"type": {"string": "mig"}})
    found = known(plain, mig, classes=classes)
    assert short(asked(found, exactly("a")).takes) == {"a": 1, "b": 1}
    assert short(asked(found, exactly("mig")).takes) == {"a": 1, "b": 1, "mig": 1}


def test_a_class_that_is_not_understood_has_at_most_the_devices_of_its_driver() -> None:
    memory = f'device.capacity["{GPU}"].memory > quantity("80Gi")'
    large = device_class("large", f'device.driver == "{GPU}" && {memory}')
    gpus = device_class(GPU, f'device.driver == "{GPU}"')
    found = known(on("n1", GPU, 4), on("n1", NIC, 2), classes=(large, gpus))
    assert has(found) == {GPU: 4, "large": 4}
    told = asked(found, exactly("large", 2))
    # They are surely of the driver's own class; that others of it are large is not.
    assert (short(told.takes), told.left) == ({GPU: 2, "large": 2}, True)
    assert short(asked(found, exactly(GPU)).takes) == {GPU: 1}


@pytest.mark.parametrize(
    ("request_", "takes", "left"),
    [
        pytest.param(exactly("gone"), {"gone": 1}, False, id="no such class"),
        pytest.param(exactly(GPU, adminAccess=True), {}, False, id="admin access"),
        pytest.param(
            exactly(GPU, 2, selectors=[{"cel": {"expression": "x"}}]), {GPU: 2}, True, id="chosen"
        ),
        pytest.param(exactly(GPU, allocationMode="All"), {GPU: 1}, True, id="all of them"),
        pytest.param(exactly(GPU, tolerations=[{"key": "x"}]), {}, True, id="tolerates taints"),
        pytest.param(
            {"name": "r", "firstAvailable": [
                {"name": "a", "deviceClassName": GPU, "count": 4},
                {"name": "b", "deviceClassName": GPU, "count": 2},
            ]},
            {GPU: 2}, True, id="first of one class",
        ),
        pytest.param(
            {"name": "r", "firstAvailable": [
                {"name": "a", "deviceClassName": GPU}, {"name": "b", "deviceClassName": NIC}
            ]},
            {}, True, id="first of two classes",
        ),
        pytest.param({"name": "r", "inAYearToCome": {}}, {}, True, id="another form"),
    ],
)  # fmt: skip
def test_of_other_requests_what_is_certain_counts(
    request_: JsonObject, takes: dict[str, int], *, left: bool
) -> None:
    told = asked(known(on("n1", GPU, 4), on("n1", NIC, 2)), request_)
    assert (short(told.takes), told.left) == (takes, left)


def test_devices_for_several_claims_are_not_counted_out() -> None:
    found = known(on("n1", GPU, 1, allowMultipleAllocations=True))
    told = asked(found, exactly(GPU, 2))
    assert (told.takes, told.left) == ({}, True)


def test_who_shares_a_claim_may_be_elsewhere_only_if_its_devices_are_reached_from_there() -> None:
    wide = slice_of("s", NIC, devices(2), allNodes=True)
    found = known(on("n1", GPU, 1), wide)
    assert asked(found, exactly(GPU)).local
    assert not asked(found, exactly(NIC)).local
    assert asked(found, exactly(GPU), exactly(NIC)).local
