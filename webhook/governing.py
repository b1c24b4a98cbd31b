"""The policy that reviews are judged by while it changes: replaced whole, and never lost."""

import logging
from typing import Final

from api import names
from policies import policy_source
from policies.policy import Policy
from policies.policy_source import BadPolicyError, Source
from webhook.metrics import Metrics

LOG: Final = logging.getLogger(__name__)


class Governing:
    """Holds the last good policy. Reviews ask for it once each, so that none goes by two.

    A bad text, or none any more, changes nothing: who takes a policy away by mistake must not
    find the door open.
    """

    def __init__(self, source: Source, namespace: str, metrics: Metrics) -> None:
        self._source = source
        self._origin = f"ConfigMap {namespace}/{names.POLICY_CONFIG} key {names.POLICY_KEY}"
        self._metrics = metrics
        self._show()
        metrics.policy_is_good.set(1)

    def policy(self) -> Policy:
        """Give the policy that counts now."""
        return self._source.policy

    @property
    def source(self) -> Source:
        """The policy with where it is from."""
        return self._source

    def take(self, text: str | None) -> None:
        """Go by what the ConfigMap says from now on, if that can be gone by."""
        if text is None:
            LOG.warning(
                "%s is gone; the policy of revision %s still holds",
                self._origin,
                self._source.revision,
            )
            return
        try:
            found = policy_source.read(self._origin, text)
        except BadPolicyError as error:
            self._metrics.policy_faults.inc()
            self._metrics.policy_is_good.set(0)
            LOG.error(  # noqa: TRY400 - the line says it all
                "%s; revision %s still holds", error, self._source.revision
            )
            return
        self._metrics.policy_is_good.set(1)
        if found != self._source:
            self._source = found
            self._show()
            LOG.info("going by the policy of revision %s now", found.revision)

    def _show(self) -> None:
        self._metrics.policy.clear()
        self._metrics.policy.labels(self._source.revision, self._source.origin).set(1)
