"""The engine's benchmark runs, and its clusters, floors, ratios and plots are what they say."""

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.bench import engine, plot
from tests.bench import engine_clusters as clusters
from tests.bench import engine_floors as floors
from tests.bench import engine_gangs as asking
from tests.bench.engine_clock import per_doubling, pinned


@pytest.mark.parametrize("full", [0.3, 0.6, 0.8, 0.95])
def test_a_cluster_is_as_full_as_asked_and_no_node_is_overfull(full: float) -> None:
    there = clusters.tenants(1000, full)
    used = np.zeros(1000, dtype=np.int64)
    np.add.at(used, [tenant.row for tenant in there], [tenant.gpus for tenant in there])
    assert used.max() <= clusters.GPUS
    assert used.sum() / (1000 * clusters.GPUS) == pytest.approx(full, abs=0.01)
    assert len(there) == 1000 * clusters.PODS_EACH
    assert there == clusters.tenants(1000, full)


def test_racks_are_ragged() -> None:
    free = np.full(1000, clusters.GPUS)
    for tenant in clusters.tenants(1000, 0.8):
        free[tenant.row] -= tenant.gpus
    assert len(set(free.reshape(-1, clusters.RACK).sum(axis=1).tolist())) > 10
    assert len(set(free.tolist())) > 4


def test_a_serving_gang_has_five_cliques_of_a_hundred_pods_and_no_two_gangs_are_alike() -> None:
    gangs = asking.nested_gangs(5)
    for gang in gangs:
        assert len(gang.minimum) == 100
        assert len({want.clique for want in gang.minimum}) == 5
    assert len({str([want.need for want in gang.minimum]) for gang in gangs}) == 5


def test_the_floor_places_what_fits_and_no_more() -> None:
    taken = clusters.taken(100, 0.0)
    free = floors.columns(taken)
    wide = asking.gang("wide", [asking.Clique("wide", 101, 8)])
    # One node of a hundred is cordoned, which the floor does not look at.
    assert floors.greedy(free, floors.asked(taken, [wide])) == 100


def test_growth_is_told_for_each_doubling() -> None:
    found = per_doubling([(2000, 2.0), (1000, 1.0), (8000, 8.0)])
    assert [(small, large) for small, large, _ in found] == [(1000, 2000), (2000, 8000)]
    assert [ratio for _, _, ratio in found] == pytest.approx([2.0, 2.0])


def test_pinning_ends_with_its_block() -> None:
    before = os.sched_getaffinity(0)
    with pinned() as core:
        assert os.sched_getaffinity(0) == {core}
    assert os.sched_getaffinity(0) == before


def test_a_plot_draws_each_line_through_its_points() -> None:
    lines = {"a < b": [(1.0, 1.0), (10.0, 100.0)], "flat": [(1.0, 5.0), (5.0, 5.0), (10.0, 5.0)]}
    drawn = ElementTree.fromstring(plot.svg("t", "x", "y", lines))  # noqa: S314
    found = [
        [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        for line in drawn.iter("{http://www.w3.org/2000/svg}polyline")
    ]
    left, right = plot.LEFT, plot.WIDTH - plot.RIGHT
    low, high = plot.HEIGHT - plot.BOTTOM, plot.TOP
    assert found[0] == [(left, low), (right, high)]
    assert len({y for _, y in found[1]}) == 1
    assert [x for x, _ in found[1]] == sorted(x for x, _ in found[1])
    assert "a < b" in [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.no_cover
def test_a_quick_run_writes_table_object_and_plots(tmp_path: Path) -> None:
    engine.main(["--quick", "--clock", "cpu"], tmp_path)
    written = json.loads((tmp_path / "engine.json").read_text())
    judged = [row for row in written["rows"] if row["budget"]]
    assert all(row["value"] > 0 for row in judged)
    assert written["growth"].keys() == {"nodes", "gangs"}
    assert (tmp_path / "engine.md").read_text().count("\n| 40% of 200 nodes full") > 20
    for counted in ("nodes", "gangs"):
        drawn = ElementTree.parse(tmp_path / f"engine-{counted}.svg")  # noqa: S314
        lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
        assert len(lines) == len(written["growth"][counted])
