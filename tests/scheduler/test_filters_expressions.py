"""Which devices a class means is read from the plain forms of its selectors, and from no others."""

import pytest

from api.claims import Attribute, Cel, DeviceSelector
from scheduler.filters.expressions import Conditions, read

GPU = "gpu.example.com"
TOLD = {
    "type": Attribute(text="gpu"),
    f"{GPU}/model": Attribute(text="h200"),
    "other.com/index": Attribute(number=3),
    "healthy": Attribute(truth=True),
    "version": Attribute(),
}


def conditions(*expressions: str) -> Conditions:
    return read(DeviceSelector(Cel(each)) for each in expressions)


def judged(expression: str, driver: str = GPU) -> tuple[bool, bool]:
    """Whether it was read whole, and whether the device is one of those that are meant."""
    found = conditions(expression)
    return found.whole, found.hold(driver, TOLD)


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{GPU}"',
        f"device.driver=='{GPU}'",
        f'  "{GPU}"   ==\n device . driver ',
        f'((device.driver == "{GPU}"))',
        f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == 'gpu'",
        f'(device.attributes["{GPU}"].model == "h200") && (device.driver == "{GPU}")',
        f'device.attributes["{GPU}"]["type"] == "gpu"',
        'device.attributes["other.com"].index == 3',
        f'device.attributes["{GPU}"].healthy == true',
    ],
)
def test_plain_forms_are_read_however_they_are_spelled(expression: str) -> None:
    assert judged(expression) == (True, True)


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "other.com"',
        f'device.attributes["{GPU}"].type == "mig"',
        f'device.attributes["{GPU}"].absent == "gpu"',
        f'device.attributes["{GPU}"].version == "1.0.0"',
        'device.attributes["other.com"].index == 4',
        'device.attributes["other.com"].index == "3"',
        'device.attributes["other.com"].type == "gpu"',
        f'device.attributes["{GPU}"].healthy == 1',
    ],
)
def test_devices_that_are_otherwise_are_not_meant(expression: str) -> None:
    assert judged(expression) == (True, False)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        f'device.driver != "{GPU}"',
        f'device.driver == "other.com" || device.driver == "{GPU}"',
        f'device.driver == "other.com" && false || device.driver == "{GPU}"',
        f'(device.driver == "other.com") || (device.driver == "{GPU}")',
        f'device.driver == "other.com" ? false : device.driver == "{GPU}"',
        f'device.attributes["{GPU}"].model.startsWith("h")',
        'device.driver == "a\\"b"',
        'device.driver == "a" + "b"',
        f'!(device.driver == "{GPU}")',
        'device.attributes["other.com"].index == 3.5',
    ],
)
def test_what_is_not_read_may_mean_any_device(expression: str) -> None:
    assert judged(expression) == (False, True)


def test_of_conditions_that_are_read_in_part_the_part_counts() -> None:
    mixed = f'device.driver == "{GPU}" && device.capacity["{GPU}"].memory > quantity("80Gi")'
    assert judged(mixed) == (False, True)
    assert judged(mixed, "other.com") == (False, False)
    assert judged(f'device.driver == "{GPU}" && device.attributes["a"].b == "x && y"')[0]


def test_all_selectors_must_hold_and_none_takes_everything() -> None:
    both = conditions(f'device.driver == "{GPU}"', 'device.attributes["other.com"].index == 4')
    assert both.whole
    assert not both.hold(GPU, TOLD)
    assert conditions() == Conditions()
    assert conditions().hold("any", {})
