"""The lives of sets that tests/model leads in memory, led at a real API server."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from typing_extensions import override

from kube.clock import SystemClock
from penstock.lab.state import Lab
from tests.model.machine import Life
from tests.model.real import Mirror, RealStage
from tests.model.stage import NAMESPACE, Stage
from tests.support.asking import asking
from tests.support.definitions import served
from tests.support.living import Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(7200)]


def test_lives_at_a_real_api_server(other_lab: Lab) -> None:
    kubectl = Kubectl(other_lab.binaries["kubectl"], other_lab.kubeconfig, NAMESPACE)
    with served(kubectl), asking(other_lab.kubeconfig) as asker:

        class RealLife(Life):
            @override
            def set_up(self) -> Stage:
                return RealStage(Path(other_lab.kubeconfig), asker)

        try:
            run_state_machine_as_test(
                RealLife,
                settings=settings(
                    max_examples=5,
                    stateful_step_count=20,
                    deadline=None,
                    derandomize=True,
                    database=None,
                    phases=(Phase.generate,),
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            Mirror(SystemClock(), asker).wipe()
