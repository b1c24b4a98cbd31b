"""What a lab is if nobody says otherwise."""

from typing import Final

NAME: Final = "default"
TOPOLOGY: Final = "zone=2,block=2,rack=5"
KUBERNETES: Final = "v1.37.1"
GROVE_ACCOUNT: Final = "grove-system/grove-operator"
