"""Every label, annotation, gate, reason and object name, spelled once."""

from typing import Final

GROUP: Final = "penstock.dev"
VERSION: Final = "v1alpha1"

NAMESPACE: Final = "penstock-system"

# Accounts: one a process, each with only the rights it needs.
WEBHOOK_ACCOUNT: Final = "penstock-webhook"
WORKLOADS_ACCOUNT: Final = "penstock-workloads"
GANGS_ACCOUNT: Final = "penstock-gangs"

# Field managers: who wrote a field, as `kubectl get --show-managed-fields` shows it.
WORKLOADS_MANAGER: Final = "penstock-workloads"
GANGS_MANAGER: Final = "penstock-gangs"
READINESS_MANAGER: Final = "penstock-gangs-readiness"
DISRUPTION_MANAGER: Final = "penstock-gangs-disruption"
# The same process, where it makes gangs of labelled pods: of one status, each writes its own part.
PLAIN_GANGS_MANAGER: Final = "penstock-plain-gangs"

# Objects of ours in our namespace.
CA_SECRET: Final = "penstock-ca"
TLS_SECRET: Final = "penstock-webhook-tls"
WEBHOOK_SERVICE: Final = "penstock-webhook"
GANGS_LEASE: Final = "penstock-gangs"
WORKLOADS_LEASE: Final = "penstock-workloads"
WEBHOOK_CONFIGURATION: Final = "penstock"
# The registration by which API servers pass on who asks for the audit log.
AUDIT_SERVICE: Final = f"{VERSION}.audit.{GROUP}"
POLICY_CONFIG: Final = "penstock-policy"
POLICY_KEY: Final = "policy.yaml"
# A policy beside it that is only tried: what it would do otherwise is counted.
CANDIDATE_KEY: Final = "candidate.yaml"
# The last policy that could be gone by, kept by gangs for webhooks that start beside a bad one.
KEPT_POLICY_CONFIG: Final = "penstock-policy-lkg"
# What gangs found when it held all that is there against the policy: in short, and by namespace.
SCAN_CONFIG: Final = "penstock-policy-scan"
SCAN_KEY: Final = "scan.json"
POLICY_REPORT: Final = "penstock-policy"
POLICY_REVISION: Final = "penstock.dev/policy-revision"
REPORTED_BY: Final = "penstock"
# On the policy's ConfigMap: what became of it, with line and field if it cannot be gone by.
POLICY_STATUS: Final = "penstock.dev/policy-status"
# The largest node and domains there are, written by gangs for the webhook's warnings.
CAPACITY_CONFIG: Final = "penstock-capacity"
CAPACITY_KEY: Final = "capacity.json"
# On that ConfigMap: whether another controller makes the gangs of sets, as the chart was told.
COMPANION_LABEL: Final = "penstock.dev/companion"

# On the Secret of the authority: how far its rotation is, and that a person wants one.
ROTATION_PHASE: Final = "penstock.dev/rotation-phase"
ROTATION_SINCE: Final = "penstock.dev/rotation-since"
ROTATE: Final = "penstock.dev/rotate"
ROTATED: Final = "penstock.dev/rotated"
CERTIFICATE_ALARM: Final = "penstock.dev/certificate-alarm"

# Rights that name no object: who may lift our gate, make pods of gangs, change what we manage.
GATES_RESOURCE: Final = "schedulinggates"
LIFT_VERB: Final = "lift"
GANG_PODS_RESOURCE: Final = "gangpods"
GANG_PODS_VERB: Final = "create"

# On pods.
GATE: Final = "penstock.dev/gang"
READINESS_GATE: Final = "penstock.dev/gang-ready"
GANG_LABEL: Final = "penstock.dev/gang"
# One of them makes pods with the gang label a gang without any custom resource.
GANG_SIZE_LABEL: Final = "penstock.dev/gang-size"
GANG_MINIMUM_LABEL: Final = "penstock.dev/gang-min-available"
QUEUE_LABEL: Final = "penstock.dev/queue"
# KAI's word for the same, which its manifests already have.
KAI_QUEUE_LABEL: Final = "kai.scheduler/queue"
QUEUE_LABELS: Final = (QUEUE_LABEL, KAI_QUEUE_LABEL)
TOPOLOGY_LABEL: Final = "penstock.dev/topology"
TOPOLOGY_LEVEL_LABEL: Final = "penstock.dev/topology-level"
# On the PodGang of a plain gang: the index of each pod it refers to. Only gangs writes it.
SLOTS_ANNOTATION: Final = "penstock.dev/slots"
# Kubernetes' own words for which one of its owner's pods a pod is.
STATEFULSET_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
STATEFULSET_POD_LABEL: Final = "statefulset.kubernetes.io/pod-name"
JOB_INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"
# On sets and gangs: how cliques are kept from starting before those they wait for.
STARTUP_ANNOTATION: Final = "penstock.dev/startup"
# On sets: whose word the replicas of live cliques and groups follow; only "template" is known.
REPLICAS_ANNOTATION: Final = "penstock.dev/replicas"
REPLICAS_OF_TEMPLATE: Final = "template"
READINESS_GATE_ANNOTATION: Final = "penstock.dev/readiness-gate"
# On a pod that was let go without its gang, in an emergency: when. Nobody takes such a pod back.
RELEASED_ANNOTATION: Final = "penstock.dev/released"
# On a set's pod: the revision of the policy under which the webhook would let it in as it is.
JUDGED_ANNOTATION: Final = "penstock.dev/judged"
# On sets and gangs: over which level of the network the replicas of a set keep apart.
SPREAD_ANNOTATION: Final = "penstock.dev/spread"
# On webhook configurations and guards' bindings: which feature gates the chart was installed with.
FEATURES_ANNOTATION: Final = "penstock.dev/feature-gates"
# On webhook configurations: which of their webhooks fail closed once they are proven to answer.
CLOSES_ANNOTATION: Final = "penstock.dev/closes-when-proven"
# On definitions: which one it is, since helm leaves those alone that an earlier release has left.
DEFINITION: Final = "penstock.dev/definition"
# The guard that asks new pods of gangs for our gate.
GANG_PODS_GUARD: Final = "penstock-guard-gang-pods"
# On PodCliques: our hash of the template they have, whatever the label of that template says.
TEMPLATE_HASH_ANNOTATION: Final = "penstock.dev/template-hash"

DEFAULT_SCHEDULER: Final = "default-scheduler"

# Koordinator's word, an annotation or a label of sets and gangs: the zone where they would best be.
RESERVATION_REF: Final = "scheduling.koordinator.sh/reservation-ref"
PREFERRED_ZONE: Final = "scheduling.koordinator.sh/network-topology-zone"

# Koordinator's too, of sets and gangs: how long a gang may wait to be bound.
GANG_TIMEOUT: Final = "scheduling.koordinator.sh/gang-timeout"

# Grove's words, which manifests and tools already use.
GROVE_GROUP: Final = "grove.io"
GROVE_GANG_GROUP: Final = "scheduler.grove.io"
GROVE_VERSION: Final = "v1alpha1"
MNNVL_ANNOTATION: Final = "grove.io/mnnvl-group"
MNNVL_LABEL: Final = "grove.io/mnnvl-group"  # on a ComputeDomain
UNPROTECTED_ANNOTATION: Final = "grove.io/disable-managed-resource-protection"
PODGANG_LABEL: Final = "grove.io/podgang"
BASE_PODGANG_LABEL: Final = "grove.io/base-podgang"
PODCLIQUE_LABEL: Final = "grove.io/podclique"
POD_INDEX_LABEL: Final = "grove.io/podclique-pod-index"
SET_REPLICA_LABEL: Final = "grove.io/podcliqueset-replica-index"
SCALING_GROUP_LABEL: Final = "grove.io/podcliquescalinggroup"
SCALING_GROUP_REPLICA_LABEL: Final = "grove.io/podcliquescalinggroup-replica-index"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "grove-operator"
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
TEMPLATE_HASH_LABEL: Final = "grove.io/pod-template-hash"
SCHEDULER_NAME_LABEL: Final = "grove.io/scheduler-name"
TOPOLOGY_NAME_ANNOTATION: Final = "grove.io/topology-name"
SET_FINALIZER: Final = "grove.io/podcliqueset.grove.io"
CLIQUE_FINALIZER: Final = "grove.io/podclique.grove.io"
GROUP_FINALIZER: Final = "grove.io/podcliquescalinggroup.grove.io"
DOMAIN_FINALIZER: Final = "grove.io/computedomain-finalizer"
GROVE_GATE: Final = "grove.io/podgang-pending-creation"
# The init container that waits for other cliques, and its volumes.
WAITER: Final = "grove-initc"
POD_INFO_VOLUME: Final = "pod-info-vol"
TOKEN_VOLUME: Final = "sa-token-secret-vol"
NAME_LABEL: Final = "app.kubernetes.io/name"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"

# Node labels that name the network's levels, widest first.
ZONE_KEY: Final = "topology.kubernetes.io/zone"
BLOCK_KEY: Final = "topology.kubernetes.io/block"
RACK_KEY: Final = "topology.kubernetes.io/rack"
HOSTNAME_KEY: Final = "kubernetes.io/hostname"

# A clique or a group has fewer pods at work than it needs.
MIN_AVAILABLE_BREACHED: Final = "MinAvailableBreached"
SCHEDULED_BELOW_MINIMUM: Final = "ScheduledReplicasBelowMinAvailable"
INSUFFICIENT_READY: Final = "InsufficientReadyPods"
SUFFICIENT_READY: Final = "SufficientReadyPods"
INSUFFICIENT_COPIES: Final = "InsufficientAvailablePodCliqueScalingGroupReplicas"
SUFFICIENT_COPIES: Final = "SufficientAvailablePodCliqueScalingGroupReplicas"

CLIQUE_SCHEDULED: Final = "PodCliqueScheduled"
INSUFFICIENT_SCHEDULED: Final = "InsufficientScheduledPods"
NEVER_SCHEDULED: Final = "NotScheduledYet"
SCALED_TO_NOTHING: Final = "ScaledToNothing"
SUFFICIENT_SCHEDULED: Final = "SufficientScheduledPods"
# On a set whose cliques wait for what can never come about.
STARTUP_IMPOSSIBLE: Final = "StartupImpossible"
ORDER_NEVER_COMPLETES: Final = "OrderNeverCompletes"
GANG_TERMINATION: Final = "GangTerminationInProgress"
TERMINATION_ACTIVE: Final = "GangTerminationActive"
# On the first PodClique of what was made anew: when that was, and how often in a row.
COPY_TERMINATION: Final = "penstock.dev/copy-termination"
REPLICA_TERMINATION: Final = "penstock.dev/replica-termination"
TERMINATIONS: Final = (COPY_TERMINATION, REPLICA_TERMINATION)
# On a PodClique whose pods fail soon after their making: how often in a row, and since when.
FAILURES_ANNOTATION: Final = "penstock.dev/failures"
TOPOLOGY_UNAVAILABLE: Final = "TopologyLevelsUnavailable"
# On sets: whether an update gets on, and why it does or does not.
PROGRESSING: Final = "Progressing"
REASON_UPDATING: Final = "UpdateInProgress"
REASON_UPDATED: Final = "UpdateComplete"
REASON_PAUSED: Final = "UpdatePaused"
REASON_OVERDUE: Final = "ProgressDeadlineExceeded"
TOPOLOGY_LEVELS_PRESENT: Final = "AllClusterTopologyLevelsAvailable"
TOPOLOGY_LEVELS_MISSING: Final = "ClusterTopologyLevelsUnavailable"
TOPOLOGY_NOT_FOUND: Final = "ClusterTopologyNotFound"
TOPOLOGY_NAME_MISSING: Final = "TopologyNameMissing"
# On a pod whose clique waits for others to be up; written by gangs.
STARTUP_BLOCKED: Final = "PodStartupBlocked"
PARENTS_READY: Final = "ParentsReady"  # its reason once that is over

# PodGang conditions and their reasons.
INITIALIZED: Final = "Initialized"
PODS_CREATED: Final = "PodGangPodsCreated"
PODS_PENDING: Final = "PodGangPodsCreationPending"
QUOTA_EXCEEDED: Final = "QuotaExceeded"
# On a gang whose pods a quota refuses: since when, and until when they are withdrawn.
QUOTA_ANNOTATION: Final = "penstock.dev/quota"
SCHEDULED: Final = "Scheduled"
# Where a gang's room is, how near its pods are to each other, and what was broken for it.
PLACED: Final = "Placed"
REASON_PLACED: Final = "RoomReserved"
# On a gang that has waited for longer than its timeout.
TIMED_OUT: Final = "TimedOut"
REASON_TIMED_OUT: Final = "GangTimeout"
REASON_MAY_WAIT_LONGER: Final = "MayWaitLonger"
READY: Final = "Ready"
REASON_READY: Final = "MinimumReady"
REASON_GANGS_OFF: Final = "GangSchedulingOff"  # of the pod's readiness gate
REASON_NOT_READY: Final = "MinimumNotReady"
# On gangs that were ready once: whether they lack their minimum now.
UNHEALTHY: Final = "Unhealthy"
REASON_LOST: Final = "MinimumLost"
REASON_BACK: Final = "MinimumBack"
REASON_WAITING_FOR_PODS: Final = "WaitingForPods"
REASON_WAITING_FOR_BASE: Final = "WaitingForBaseGang"
REASON_INSUFFICIENT: Final = "InsufficientCapacity"
REASON_NEVER_FITS: Final = "NeverFits"  # nor would it if nobody else were there
REASON_FOREIGN_GATES: Final = "WaitingForOtherGates"
REASON_NOT_RESERVED: Final = "ReservationFailed"
REASON_LIFTING: Final = "Lifting"
REASON_ROLLED_BACK: Final = "RolledBack"
REASON_BOUND: Final = "AllPodsBound"
REASON_REFUSED: Final = "PodsRefused"  # by kube-scheduler, in a gang that had started
REASON_WAITING_FOR_PARENTS: Final = "WaitingForParents"  # also of PodStartupBlocked

# On reservations by people: whether their room is kept, and why it is or is not.
AVAILABLE: Final = "Available"
REASON_KEPT: Final = "RoomKept"
REASON_USED: Final = "Used"
REASON_EXPIRED: Final = "Expired"
REASON_KEEP_FAILED: Final = "Failed"

# Kubernetes' condition of pods that go through no fault of theirs, and our reason for it; Grove's
# of gangs, on one that was rolled back.
DISRUPTION_TARGET: Final = "DisruptionTarget"
REASON_TAKEN_BACK: Final = "GangTakenBack"

# Reason of an Event on a pod whose plain gang cannot have its PodGang.
REASON_NAME_TAKEN: Final = "GangNameTaken"
