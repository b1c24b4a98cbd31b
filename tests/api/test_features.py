import pytest

from api.features import Features, read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Features()),
        ("GangScheduling=false", Features(gang_scheduling=False)),
        ("GroveIntegration=False", Features(grove_integration=False)),
        (
            "GangScheduling=false, GroveIntegration=false",
            Features(gang_scheduling=False, grove_integration=False),
        ),
        ("GangScheduling=false,GangScheduling=true", Features()),
    ],
)
def test_gates_are_read_as_kubernetes_spells_them(text: str, expected: Features) -> None:
    assert read(text) == expected
    assert read(expected.text) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Gangs=false", "there is no feature gate 'Gangs', only GangScheduling and GroveIntegr"),
        ("GangScheduling", "'GangScheduling' is not GangScheduling=true or GangScheduling=false"),
        ("GangScheduling=0", "'GangScheduling=0' is not GangScheduling=true"),
    ],
)
def test_what_is_no_gate_is_refused_with_those_there_are(text: str, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        read(text)


def test_pods_of_sets_are_gangs_only_while_both_are_on() -> None:
    assert Features().sets
    assert not Features(gang_scheduling=False).sets
    assert not Features(grove_integration=False).sets
