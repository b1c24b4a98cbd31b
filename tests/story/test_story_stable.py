from pathlib import Path

import pytest

from tests.story.stable import Places, stable

PLACES = Places(Path("/srv/clone"), Path("/srv/state"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("chat-0-prefill-jwmw6  Running", "chat-0-prefill-xxxxx  Running"),
        ("chat-0-decode-0  zone-0-block-0-rack-2", "chat-0-decode-0  zone-0-block-0-rack-2"),
        ("default/wide-0   1s      34", "default/wide-0   5s      34"),
        ("default/wide-0   11s     34", "default/wide-0   5s      34"),
        ("gang wide-0  Pending, waits for 1m2s", "gang wide-0  Pending, waits for 5s"),
        ("all 12 pods are bound and run (0.5 s)", "all 12 pods are bound and run (1 s)"),
        ("at http://127.0.0.1:38603/ (Ctrl-C", "at http://127.0.0.1:12345/ (Ctrl-C"),
        ("2026-11-19T15:45:13.079286Z  deny", "2027-01-02T03:04:05Z  deny"),
        ("webhook-1  b2702b24-0dfb-4885-8aa4-0d683b9b091b", "webhook-0  0a1b2c3d-…"),
        ('KUBECONFIG="/srv/state/penstock/labs"', 'KUBECONFIG="~/.local/state/penstock/labs"'),
        ("ends with blanks   ", "ends with blanks"),
        ("Starting lab demo ... 0.0 s\nchart: helm\nso", "so"),
        ("272 needed, 256 free, 16 short", "272 needed, 256 free, 16 short"),
    ],
)
def test_what_varies_is_told_by_one_word(text: str, told: str) -> None:
    assert stable(text, PLACES) == told
    assert stable(told, PLACES) == told


def test_pods_of_a_clique_are_in_the_order_of_their_nodes() -> None:
    one = "│   ├── a-bcdfg  Running  node-05\n│   └── a-zzzzz  Running  node-04\n└── gang b"
    other = "│   ├── a-hjklm  Running  node-04\n│   └── a-wwwww  Running  node-05\n└── gang b"
    assert stable(one, PLACES) == stable(other, PLACES)
    assert stable(one, PLACES).splitlines()[0].endswith("node-04")


def test_pods_of_two_cliques_are_not_mixed() -> None:
    text = "│   └── a-bcdfg  Running  node-05\n│   └── b-bcdfg  Running  node-04"
    assert [line[-1] for line in stable(text, PLACES).splitlines()] == ["5", "4"]
