"""When each alert fires and when it does not: series as promtool writes them, a value a minute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

BUCKETS: Final = "penstock_webhook_duration_seconds_bucket"
PLANS: Final = "penstock_gangs_plan_seconds_bucket"
DECISIONS: Final = "grove_gang_decision_seconds_bucket"
QUEUE: Final = "workqueue_queue_duration_seconds_bucket"
LOOKS: Final = "controller_runtime_reconcile"
NEVER: Final = 'penstock_gangs_waiting{reason="NeverFits"}'
FAILED: Final = 'penstock_gangs_waiting{reason="ReservationFailed"}'
GATES: Final = 'penstock_gangs_waiting{reason="WaitingForOtherGates"}'
HELD: Final = 'penstock_gangs_held_gpu_seconds_total{resource="nvidia.com/gpu"}'
WASTED: Final = 'penstock_gangs_wasted_gpu_seconds_total{resource="nvidia.com/gpu"}'
POLICY: Final = "penstock_webhook_policy_info"


@dataclass(frozen=True)
class Case:
    """Series, and what becomes of an alert after so many minutes; without summary it is silent."""

    alert: str
    series: Mapping[str, str]
    minutes: int
    summary: str = ""
    severity: str = "warning"
    labels: Mapping[str, str] = field(default_factory=dict)


def reviews(fast: str, slow: str, every: str) -> dict[str, str]:
    """Reviews of sets: as many up to 0.1 s, up to 1 s and in all."""
    bounds = {"0.1": fast, "1.0": slow, "+Inf": every}
    return {f'{BUCKETS}{{path="/p",le="{bound}"}}': values for bound, values in bounds.items()}


def timed(name: str, quick: str, every: str, labels: str = "") -> dict[str, str]:
    """What took at most a second, and what took up to 20."""
    bounds = {"1.0": quick, "20.0": every, "+Inf": every}
    return {f'{name}{{{labels}le="{bound}"}}': values for bound, values in bounds.items()}


def looks(errors: str) -> dict[str, str]:
    """Looks at gangs, ten a minute, of which some fail."""
    return {
        f'{LOOKS}_errors_total{{controller="podgang"}}': errors,
        f'{LOOKS}_total{{controller="podgang",result="success"}}': "0+10x60",
    }


PATH: Final = {"path": "/p"}
GANG: Final = {"controller": "podgang"}
GPU: Final = {"resource": "nvidia.com/gpu"}
LEADER: Final = 'leader_election_master_status{name="penstock-gangs",pod="%s"}'
LONGEST: Final = 'workqueue_longest_running_processor_seconds{controller="podgang",name="podgang"}'
EXPIRY: Final = "penstock_webhook_certificate_expiry_timestamp_seconds"

WEBHOOK: Final = (
    Case(
        "PenstockWebhookAbsent", {"penstock_webhook_caches_synced": "1x3 0x20"}, 10,
        "No webhook of Penstock is ready, or its metrics are not collected", "critical",
    ),
    Case("PenstockWebhookAbsent", {"penstock_webhook_caches_synced": "1x20"}, 10),
    Case(
        "PenstockWebhookSlow", reviews("0+50x60", "0+100x60", "0+100x60"), 30,
        "One review in a hundred at /p takes longer than 982ms", labels=PATH,
    ),
    Case("PenstockWebhookSlow", reviews("0+100x60", "0+100x60", "0+100x60"), 30),
    Case(
        "PenstockWebhookOverloaded",
        {
            'penstock_webhook_shed_total{path="/p"}': "0+2x60",
            'penstock_webhook_deadline_exceeded_total{path="/p"}': "0x60",
        },
        20, "Reviews at /p are answered too late or not at all", labels=PATH,
    ),
    Case(
        "PenstockWebhookOverloaded",
        {
            'penstock_webhook_shed_total{path="/p"}': "5x60",
            'penstock_webhook_deadline_exceeded_total{path="/p"}': "0 1x60",
        },
        20,
    ),
    Case(
        "PenstockWebhookFaults", {'penstock_webhook_faults_total{path="/p"}': "0x10 1x10"}, 12,
        "A fault of Penstock's own refused reviews at /p", labels=PATH,
    ),
    Case("PenstockWebhookFaults", {'penstock_webhook_faults_total{path="/p"}': "3x40"}, 30),
    Case(
        "PenstockWebhookStrayReviews",
        {'penstock_webhook_stray_reviews_total{path="/p"}': "0x10 4x10"}, 15,
        "The API server sends reviews to /p that have no business there", "info", PATH,
    ),
    Case(
        "PenstockWebhookStrayReviews",
        {'penstock_webhook_stray_reviews_total{path="/p"}': "4x99"}, 90,
    ),
    Case(
        "PenstockWebhookTurnsClientsAway",
        {
            "penstock_webhook_tls_handshake_failures_total": "0+2x60",
            'penstock_webhook_rejected_total{path="/p",code="403"}': "0+2x60",
        },
        30, "The webhook turned 40 connections away within ten minutes",
    ),
    Case(
        "PenstockWebhookTurnsClientsAway",
        {
            "penstock_webhook_tls_handshake_failures_total": "0+1x60",
            'penstock_webhook_rejected_total{path="/p",code="413"}': "0+9x60",
        },
        30,
    ),
    Case(
        "PenstockCertificateEndsSoon", {EXPIRY: f"{4 * 86400}x60"}, 20,
        "The webhook's certificate ends in 3d 23h 40m 0s and was not renewed", "critical",
    ),
    Case("PenstockCertificateEndsSoon", {EXPIRY: f"{9 * 86400}x60"}, 20),
    Case(
        "PenstockPolicyInvalid", {"penstock_webhook_policy_valid": "1x3 0x20"}, 15,
        "The policy's ConfigMap cannot be gone by; an earlier policy is in force",
    ),
    Case("PenstockPolicyInvalid", {"penstock_webhook_policy_valid": "0x2 1x20"}, 15),
    Case(
        "PenstockPoliciesDiffer",
        {f'{POLICY}{{revision="a",pod="0"}}': "1x30", f'{POLICY}{{revision="b",pod="1"}}': "1x30"},
        20, "Webhooks have gone by 2 different policies for ten minutes",
    ),
    Case(
        "PenstockPoliciesDiffer",
        {f'{POLICY}{{revision="a",pod="0"}}': "1x30", f'{POLICY}{{revision="a",pod="1"}}': "1x30"},
        20,
    ),
    Case(
        "PenstockAuditFailing", {"penstock_webhook_audit_failing": "0x3 1x20"}, 15,
        "The audit log cannot be written, or has lost records",
    ),
    Case(
        "PenstockAuditFailing",
        {'penstock_webhook_audit_dropped_total{reason="queue"}': "0x3 9x20"},
        10, "The audit log cannot be written, or has lost records",
    ),
    Case(
        "PenstockAuditFailing",
        {
            "penstock_webhook_audit_failing": "0x30",
            "penstock_webhook_audit_missed_lines_total": "7x30",
        },
        25,
    ),
)  # fmt: skip

CONTROLLERS: Final = (
    Case(
        "PenstockGangsWithoutLeader", {"penstock_gangs_leads": "0x10"}, 5,
        "Nobody places gangs, or the metrics of gangs are not collected", "critical",
    ),
    Case(
        "PenstockGangsWithoutLeader",
        {'penstock_gangs_leads{pod="0"}': "0x10", 'penstock_gangs_leads{pod="1"}': "1x10"}, 5,
    ),
    Case(
        "PenstockWorkloadsWithoutLeader", {"penstock_workloads_leads": "1x10"}, 30,
        "Nobody makes the pods of sets", "critical",
    ),
    Case(
        "PenstockWorkloadsWithoutLeader", {"penstock_workloads_leads": "0x40"}, 30,
        "Nobody makes the pods of sets", "critical",
    ),
    Case("PenstockWorkloadsWithoutLeader", {"penstock_gangs_leads": "1x40"}, 30),
    Case("PenstockWorkloadsWithoutLeader", {"penstock_workloads_leads": "1x40"}, 30),
    Case(
        "PenstockSeveralLeaders", {LEADER % "a": "1x10", LEADER % "b": "1x10"}, 5,
        "2 replicas lead by the Lease penstock-gangs", "critical", {"name": "penstock-gangs"},
    ),
    Case("PenstockSeveralLeaders", {LEADER % "a": "1x10", LEADER % "b": "0x10"}, 5),
    Case(
        "PenstockLeaderChangesOften",
        {f'penstock_gangs_leads{{pod="{pod}"}}': f"{pod} {1 - pod} " * 5 for pod in (0, 1)},
        9, "The lead changed hands again and again within an hour",
    ),
    Case(
        "PenstockLeaderChangesOften",
        {
            'penstock_gangs_leads{pod="0"}': "1x20 0x20",
            'penstock_gangs_leads{pod="1"}': "0x20 1x20",
        },
        39,
    ),
    Case(
        "PenstockReconcileErrors", looks("0+2x60"), 40, "20% of looks at each podgang fail",
        labels=GANG,
    ),
    Case("PenstockReconcileErrors", looks("0x30 5x30"), 40),
    Case(
        "PenstockReconcileStuck", {LONGEST: "0+60x20"}, 10,
        "One look at a podgang has taken 10m 0s", labels=GANG,
    ),
    Case("PenstockReconcileStuck", {LONGEST: "0+60x3 0+60x3 0+60x9"}, 10),
    Case(
        "PenstockQueueSlow", timed(QUEUE, "0x60", "0+10x60", 'controller="podgang",'), 40,
        "Each podgang waits 18.1s to be looked at", labels=GANG,
    ),
    Case("PenstockQueueSlow", timed(QUEUE, "0+10x60", "0+10x60", 'controller="podgang",'), 40),
    Case("PenstockQueueSlow", timed(QUEUE, "0x60", "0+10x60", 'controller="other",'), 40),
)  # fmt: skip

GANGS: Final = (
    Case(
        "PenstockPlansSlow", timed(PLANS, "0x60", "0+10x60"), 40,
        "The engine works for 19.81s on a plan",
    ),
    Case("PenstockPlansSlow", timed(PLANS, "0+10x60", "0+10x60"), 40),
    Case(
        "PenstockDecisionsSlow", timed(DECISIONS, "0x60", "0+10x60"), 40,
        "One gang in ten waits longer than 18.1s for the engine",
    ),
    Case("PenstockDecisionsSlow", timed(DECISIONS, "0+10x60", "0+10x60"), 40),
    Case(
        "PenstockGangsNeverFit", {NEVER: "0x5 2x50"}, 45,
        "2 gangs would find no room if nobody else were there either", "info",
    ),
    Case("PenstockGangsNeverFit", {NEVER: "2x20 0x40"}, 45),
    Case(
        "PenstockReservationsFail", {FAILED: "0x5 3x50"}, 20,
        "3 gangs have a place that the API server does not let be reserved", "critical",
    ),
    Case("PenstockReservationsFail", {FAILED: "3x5 0x50"}, 20),
    Case(
        "PenstockGangsHeldByOtherGates", {GATES: "1x90"}, 70,
        "1 gangs have waited for an hour for others to lift their gates", "info",
    ),
    Case("PenstockGangsHeldByOtherGates", {GATES: "1x30 0x2 1x90"}, 70),
    Case(
        "PenstockGangsNotBound", {'penstock_gangs_rollbacks_total{cause="not_bound"}': "0x5 8x30"},
        30, "8 gangs were taken back within half an hour",
    ),
    Case(
        "PenstockGangsNotBound",
        {'penstock_gangs_rollbacks_total{cause="timeout"}': "0x5 8x30"}, 30,
    ),
    Case(
        "PenstockGpusWasted", {HELD: "0+600x120", WASTED: "0+300x120"}, 110,
        "50% of the time that nvidia.com/gpu were reserved came to nothing", labels=GPU,
    ),
    Case("PenstockGpusWasted", {HELD: "0+600x120", WASTED: "0+60x120"}, 110),
    Case("PenstockGpusWasted", {HELD: "0+6x120", WASTED: "0+6x120"}, 110),
    Case(
        "PenstockScansFail", {"penstock_gangs_scan_failures_total": "0+1x60"}, 30,
        "What is there is not held against the policy any more",
    ),
    Case("PenstockScansFail", {"penstock_gangs_scan_failures_total": "0x20 1x60"}, 50),
)  # fmt: skip

CASES: Final = (*WEBHOOK, *CONTROLLERS, *GANGS)
