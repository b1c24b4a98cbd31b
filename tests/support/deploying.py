"""Penstock in a lab with a real node, by the chart's own Deployments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from penstock.lab.helm import Helm
from penstock.lab.images.penstock import Made
from penstock.lab.realnode.installing import Site, install

CLIENT: Final = "kube-apiserver"
"""What the API server's certificate for webhooks says it is."""

CLIENTS: Final = "clients"
"""The ConfigMap with the authority that has signed it."""

ONLY_ITS_API_SERVER: Final = (
    f"webhook.clients.configMap={CLIENTS}",
    f"webhook.clients.names={{{CLIENT}}}",
)

# With traces, to where nobody takes them: the image holds what that needs, and nobody waits.
TRACES = "traces.endpoint=http://127.0.0.1:4318/v1/traces"


@dataclass(frozen=True)
class Deployer:
    """Who installs and upgrades Penstock in the lab."""

    site: Site
    say: Callable[[str], None]

    async def install(self, *further: str) -> Made:
        """Have the chart's own Deployments run from an image made of this code, and all work."""
        return await install(self.site, 2, [*ONLY_ITS_API_SERVER, TRACES, *further], 180, self.say)

    async def helm(self, *arguments: str) -> str:
        """Have helm do something to the release, and wait for its hooks alone."""
        home = self.site.folder.root / "penstock" / "helm"
        return await Helm(self.site.helm, self.site.folder.kubeconfig, home).run(*arguments)
