"""The chart, rendered once for all tests that look at it."""

from tests.support.charts import helm, inside, outside, render

__all__ = ["helm", "inside", "outside", "render"]
