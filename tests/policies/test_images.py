"""Image names in full."""

import pytest

from policies import images
from policies.images import Image

SHA = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("written", "repository", "tag", "digest"),
    [
        ("nginx", "docker.io/library/nginx", "latest", ""),
        ("nginx:1.27", "docker.io/library/nginx", "1.27", ""),
        ("team/engine", "docker.io/team/engine", "latest", ""),
        ("registry.example/engine:2", "registry.example/engine", "2", ""),
        ("registry.example:5000/a/b", "registry.example:5000/a/b", "latest", ""),
        ("localhost/engine", "localhost/engine", "latest", ""),
        (f"registry.example/engine@{SHA}", "registry.example/engine", "", SHA),
        (f"registry.example/engine:2@{SHA}", "registry.example/engine", "2", SHA),
        ("localhost:5000/engine", "localhost:5000/engine", "latest", ""),
    ],
)
def test_what_is_left_out_is_filled_in(
    written: str, repository: str, tag: str, digest: str
) -> None:
    assert images.read(written) == Image(repository, tag, digest)
