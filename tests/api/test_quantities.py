"""Quantities are read as Kubernetes reads them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import quantities


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", "1"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("100m", "0.1"),
        ("1k", "1000"),
        ("1Ki", "1024"),
        ("16Gi", str(16 * 2**30)),
        ("1E", "1e18"),
        ("1E3", "1000"),
        ("1e3", "1000"),
        ("12e-1", "1.2"),
        ("250n", "2.5e-7"),
        ("-2Mi", str(-2 * 2**20)),
        ("+3", "3"),
    ],
)
def test_every_spelling_of_the_api_server_is_read(written: str, value: str) -> None:
    assert quantities.parse(written) == Decimal(value)


@pytest.mark.parametrize(
    "written", ["", "abc", "1KI", "1 Gi", "1ii", "--1", "1e", "Gi", "1mm", "1Ei3"]
)
def test_what_is_no_quantity_is_named(written: str) -> None:
    with pytest.raises(quantities.BadQuantityError, match="is not a quantity"):
        quantities.parse(written)


def test_endless_digits_are_no_quantity() -> None:
    assert quantities.whole("cpu", "9" * 1_000) == quantities.MOST
    with pytest.raises(quantities.BadQuantityError, match="is not a quantity") as caught:
        quantities.parse("9" * 2_000_000)
    assert len(str(caught.value)) < 200


def test_amounts_are_rounded_up_and_only_cpu_counts_in_thousandths() -> None:
    given_amounts = {"cpu": "1500u", "memory": "0.5", "nvidia.com/gpu": "8"}
    assert quantities.amounts(given_amounts) == {"cpu": 2, "memory": 1, "nvidia.com/gpu": 8}


def test_sums_and_maxima_keep_what_only_one_side_names() -> None:
    left, right = {"cpu": 1, "memory": 5}, {"cpu": 3, "nvidia.com/gpu": 1}
    assert quantities.plus(left, right) == {"cpu": 4, "memory": 5, "nvidia.com/gpu": 1}
    assert quantities.larger(left, right) == {"cpu": 3, "memory": 5, "nvidia.com/gpu": 1}


@given(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(0, 2**50))
def test_what_is_written_reads_back_the_same(resource: str, amount: int) -> None:
    assert quantities.whole(resource, quantities.text(resource, amount)) == amount


@pytest.mark.parametrize(
    ("resource", "amount", "written"),
    [
        ("nvidia.com/gpu", 1024, "1024"),
        ("pods", 2048, "2048"),
        ("pods", 0, "0"),
        ("memory", 1024, "1Ki"),
        ("memory", 3 * 2**30, "3Gi"),
        ("memory", 1500, "1500"),
        ("ephemeral-storage", 2**40, "1Ti"),
        ("storage", 2**20, "1Mi"),
        ("hugepages-2Mi", 2**21, "2Mi"),
        ("cpu", 1_024_000, "1024"),
    ],
)
def test_bytes_are_told_in_powers_of_two_and_what_is_counted_in_full(
    resource: str, amount: int, written: str
) -> None:
    assert quantities.text(resource, amount) == written
