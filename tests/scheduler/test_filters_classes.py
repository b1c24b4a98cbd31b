"""What is promised of filters is written down once and shown."""

from pathlib import Path

from scheduler.filters import classes
from scheduler.filters.classes import CLASSES, Class, table

PAGE = Path(__file__).parents[2] / "docs" / "filters.md"


def test_the_page_shows_the_table() -> None:
    assert table() in PAGE.read_text()


def test_every_obstacle_belongs_to_a_filter() -> None:
    named = {value for key, value in vars(classes).items() if key.isupper() and value != CLASSES}
    assert {each.obstacle for each in CLASSES if each.obstacle} == named


def test_each_class_is_used_and_each_filter_told_once() -> None:
    assert {each.stance for each in CLASSES} == set(Class)
    assert len({(each.name, each.what) for each in CLASSES}) == len(CLASSES)


def test_what_is_left_takes_no_node() -> None:
    assert not any(each.obstacle for each in CLASSES if each.stance is Class.LEFT)
