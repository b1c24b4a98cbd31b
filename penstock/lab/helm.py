"""Applying the chart with helm, as the person whose kubeconfig is given."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import penstock
from api import names
from kube.client import Client
from kube.resources import SECRETS
from penstock.lab.errors import LabError

RELEASE = "penstock"
HISTORY = 3
STUCK = "pending-install,pending-upgrade,pending-rollback"


class _Meta(msgspec.Struct):
    name: str


class _Named(msgspec.Struct):
    metadata: _Meta


@dataclass(frozen=True)
class Helm:
    """One helm binary, speaking to one cluster, with a home of its own."""

    binary: Path
    kubeconfig: Path
    home: Path

    async def run(self, *arguments: str) -> str:
        """Run helm and return what it printed; LabError with its last line if it failed."""
        process = await asyncio.create_subprocess_exec(
            self.binary,
            *arguments,
            *("--kubeconfig", str(self.kubeconfig), "--namespace", names.NAMESPACE),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Nothing of the person's own helm setup or proxies can get in the way here.
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            # SIGTERM lets helm mark the release as failed, which the next upgrade mends by itself.
            process.terminate()
            await process.wait()
            raise
        text = output.decode(errors="replace").strip()
        if process.returncode:
            last = text.splitlines()[-1] if text else f"exit code {process.returncode}"
            raise LabError(f"helm {arguments[0]} failed: {last}")
        return text


def chart() -> Path:
    """Return the chart: beside the packages in a clone, inside `penstock` when installed."""
    package = Path(penstock.__file__).parent
    for place in (package / "_chart", package.parent / "charts" / "penstock"):
        if (place / "Chart.yaml").is_file():
            return place
    raise LabError(f"the chart is missing: neither {package}/_chart nor charts/penstock is there")


async def apply_chart(
    helm: Helm,
    url: str,
    person: Client,
    say: Callable[[str], None],
    values: Sequence[str] = (),
    files: Sequence[Path] = (),
) -> None:
    """Install or upgrade the release so that webhooks are called at `url`, with further values.

    With an empty `url` the chart runs the processes, and they are called by their Service.
    """
    for stuck in await stuck_revisions(person):
        # Helm was killed in the middle and would refuse every upgrade from now on. What that
        # revision made carries the release's name, so the upgrade takes it over.
        say(f"removing {stuck}, which an interrupted helm left behind")
        await person.delete(SECRETS, stuck, names.NAMESPACE)
    helm.home.mkdir(parents=True, exist_ok=True)
    output = await helm.run(
        *("upgrade", RELEASE, str(chart()), "--install", "--create-namespace"),
        *("--set-string", f"webhook.url={url}", "--history-max", str(HISTORY)),
        *(argument for file in files for argument in ("--values", str(file))),
        *(argument for value in values for argument in ("--set", value)),
    )
    say(output)


async def stuck_revisions(person: Client) -> list[str]:
    """Name the release's records that say an operation is still going on."""
    listing = await person.list_pages(
        SECRETS,
        _Named,
        names.NAMESPACE,
        labels=f"owner=helm,name={RELEASE},status in ({STUCK})",
    )
    return [each.metadata.name for each in listing.items]
