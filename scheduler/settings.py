"""How much the engine may do."""

from dataclasses import dataclass
from typing import Final

STEPS: Final = 20_000


@dataclass(frozen=True)
class Settings:
    """Bounds on one cycle. They count steps and never seconds, so that plans are repeatable."""

    steps: int = STEPS  # for each gang; one step is one try to put something somewhere


DEFAULTS: Final = Settings()
