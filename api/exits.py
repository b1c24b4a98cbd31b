"""How a process ends: one line on stderr and one of these codes, so that a supervisor knows why."""

from typing import Final

OK: Final = 0
UNEXPECTED: Final = 1
BAD_SETTINGS: Final = 2  # also what argument parsers use
NO_API_SERVER: Final = 3  # nothing answers at the address
BAD_CREDENTIALS: Final = 4  # kubeconfig unreadable, token refused, or a right is missing
MISSING_KIND: Final = 5  # a CustomResourceDefinition is not installed
NO_CERTIFICATE: Final = 6  # TLS files did not arrive, or do not fit together
LOST_LEASE: Final = 7  # another replica leads now; restart to stand by
PORT_TAKEN: Final = 8
BAD_POLICY: Final = 9  # the policy file or ConfigMap cannot be gone by
