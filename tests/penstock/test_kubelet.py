import asyncio
import base64
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from api.jsons import Json
from penstock.lab import projected, tokens
from penstock.lab.kubelet import ClusterError, Kubelet, certificate_files
from penstock.lab.layout import ACCOUNTS, KUBELET_ACCOUNT, Layout


@dataclass
class FakeCluster:
    """Issues tokens that say when they were asked for, and has one Secret."""

    now: float = 1_000_000.0
    down: bool = False
    secret: Json = None
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def token(self, account: str, seconds: int) -> str:
        if self.down:
            raise ClusterError("cannot reach it")
        self.asked.append((account, seconds))
        claims = json.dumps({"iat": self.now, "exp": self.now + seconds, "sub": account})
        return f"e30.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.x"

    async def tls_secret(self) -> Json:
        if self.down:
            raise ClusterError("cannot reach it")
        return self.secret

    def clock(self) -> float:
        return self.now


def data(**files: str) -> Json:
    encoded: dict[str, Json] = {
        name.replace("_", "."): base64.b64encode(text.encode()).decode()
        for name, text in files.items()
    }
    return {"kind": "Secret", "data": encoded}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout.of(tmp_path)
    layout.create()
    return layout


async def test_every_component_gets_a_token_of_its_own_for_an_hour(layout: Layout) -> None:
    cluster = FakeCluster()
    await Kubelet(layout, cluster, cluster.clock).first_tokens()
    assert {(account, 3600) for account in ACCOUNTS} < set(cluster.asked)
    texts = {layout.token(account).read_text() for account in ACCOUNTS}
    assert len(texts) == len(ACCOUNTS)
    assert layout.token(ACCOUNTS[0]).stat().st_mode & 0o077 == 0


async def test_its_own_token_lasts_a_day_and_is_renewed_like_the_others(layout: Layout) -> None:
    cluster = FakeCluster()
    kubelet = Kubelet(layout, cluster, cluster.clock)
    await kubelet.first_tokens()
    assert (KUBELET_ACCOUNT, 24 * 3600) in cluster.asked
    before = layout.token(KUBELET_ACCOUNT).read_text()
    cluster.now += 16 * 3600
    assert await kubelet.renew_due()
    assert layout.token(KUBELET_ACCOUNT).read_text() != before


async def test_tokens_are_left_alone_until_two_thirds_of_their_life(layout: Layout) -> None:
    cluster = FakeCluster()
    kubelet = Kubelet(layout, cluster, cluster.clock)
    await kubelet.first_tokens()
    cluster.asked.clear()
    cluster.now += 2399
    assert await kubelet.renew_due()
    assert cluster.asked == []
    cluster.now += 1
    assert await kubelet.renew_due()
    assert {account for account, _ in cluster.asked} == set(ACCOUNTS)


async def test_a_refused_token_is_replaced_though_it_is_young(layout: Layout) -> None:
    cluster = FakeCluster()
    kubelet = Kubelet(layout, cluster, cluster.clock)
    await kubelet.first_tokens()
    cluster.asked.clear()
    kubelet.suspect(ACCOUNTS[1])
    assert await kubelet.renew_due()
    assert [account for account, _ in cluster.asked] == [ACCOUNTS[1]]
    assert await kubelet.renew_due()
    assert len(cluster.asked) == 1


async def test_without_an_api_server_the_old_files_stay(layout: Layout) -> None:
    cluster = FakeCluster(secret=data(tls_crt="c", tls_key="k"))
    kubelet = Kubelet(layout, cluster, cluster.clock)
    await kubelet.first_tokens()
    assert await kubelet.project_certificate()
    before = layout.token(ACCOUNTS[0]).read_text()
    cluster.down = True
    cluster.now += 3000
    assert not await kubelet.renew_due()
    assert await kubelet.project_certificate()
    assert layout.token(ACCOUNTS[0]).read_text() == before
    assert (layout.tls / "tls.crt").read_text() == "c"
    cluster.down = False
    assert await kubelet.renew_due()
    assert layout.token(ACCOUNTS[0]).read_text() != before


async def test_nothing_is_projected_before_certificate_and_key_are_both_there(
    layout: Layout,
) -> None:
    cluster = FakeCluster()
    kubelet = Kubelet(layout, cluster, cluster.clock)
    for secret in (None, {}, data(), data(tls_crt="c"), data(tls_crt="c", tls_key="")):
        cluster.secret = secret
        assert not await kubelet.project_certificate()
    assert projected.current(layout.tls) == {}


async def test_a_new_certificate_replaces_all_three_files(layout: Layout) -> None:
    cluster = FakeCluster(secret=data(tls_crt="c1", tls_key="k1", ca_crt="a1"))
    kubelet = Kubelet(layout, cluster, cluster.clock)
    keeping = asyncio.create_task(kubelet.keep_certificate())
    await until_reads(layout.tls, "tls.crt", "c1")
    cluster.secret = data(tls_crt="c2", tls_key="k2", ca_crt="a2")
    await until_reads(layout.tls, "tls.crt", "c2")
    files = projected.current(layout.tls)
    assert files == {"tls.crt": b"c2", "tls.key": b"k2", "ca.crt": b"a2"}
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


def test_what_is_not_base64_is_no_certificate() -> None:
    assert certificate_files({"data": {"tls.crt": "%%%", "tls.key": "aw=="}}) == {}


def test_a_token_request_names_only_a_lifetime() -> None:
    spec = tokens.request(600)["spec"]
    assert spec == {"expirationSeconds": 600}


async def until_reads(folder: Path, name: str, text: str) -> None:
    async with asyncio.timeout(10):
        while projected.current(folder).get(name) != text.encode():
            await asyncio.sleep(0.01)
