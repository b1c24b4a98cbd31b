"""A fault of ours as our log tells it: where it was, and not what it said."""

import traceback


def traced(error: Exception) -> str:
    """Give the kind of an error and its trace. Its words may be somebody's secret."""
    lines = traceback.format_tb(error.__traceback__)
    return f"{type(error).__name__}\n{''.join(lines)}"
