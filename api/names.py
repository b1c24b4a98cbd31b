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

# Objects of ours in our namespace.
CA_SECRET: Final = "penstock-ca"
TLS_SECRET: Final = "penstock-webhook-tls"
WEBHOOK_SERVICE: Final = "penstock-webhook"
GANGS_LEASE: Final = "penstock-gangs"
WORKLOADS_LEASE: Final = "penstock-workloads"
WEBHOOK_CONFIGURATION: Final = "penstock"
POLICY_CONFIG: Final = "penstock-policy"
POLICY_KEY: Final = "policy.yaml"
# The largest node and domains there are, written by gangs for the webhook's warnings.
CAPACITY_CONFIG: Final = "penstock-capacity"
CAPACITY_KEY: Final = "capacity.json"

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
TOPOLOGY_LABEL: Final = "penstock.dev/topology"
TOPOLOGY_LEVEL_LABEL: Final = "penstock.dev/topology-level"
# On sets and gangs: how cliques are kept from starting before those they wait for.
STARTUP_ANNOTATION: Final = "penstock.dev/startup"
READINESS_GATE_ANNOTATION: Final = "penstock.dev/readiness-gate"

DEFAULT_SCHEDULER: Final = "default-scheduler"

# Grove's words, which manifests and tools already use.
GROVE_GROUP: Final = "grove.io"
GROVE_GANG_GROUP: Final = "scheduler.grove.io"
GROVE_VERSION: Final = "v1alpha1"
MNNVL_ANNOTATION: Final = "grove.io/mnnvl-group"
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
NAME_LABEL: Final = "app.kubernetes.io/name"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"

# Node labels that name the network's levels, widest first.
ZONE_KEY: Final = "topology.kubernetes.io/zone"
BLOCK_KEY: Final = "topology.kubernetes.io/block"
RACK_KEY: Final = "topology.kubernetes.io/rack"
HOSTNAME_KEY: Final = "kubernetes.io/hostname"

# A clique or a group has fewer pods at work than it needs.
MIN_AVAILABLE_BREACHED: Final = "MinAvailableBreached"

CLIQUE_SCHEDULED: Final = "PodCliqueScheduled"
GANG_TERMINATION: Final = "GangTerminationInProgress"
TOPOLOGY_UNAVAILABLE: Final = "TopologyLevelsUnavailable"
# On a pod whose clique waits for others to be up; written by gangs.
STARTUP_BLOCKED: Final = "PodStartupBlocked"

# PodGang conditions and their reasons.
INITIALIZED: Final = "Initialized"
PODS_CREATED: Final = "PodGangPodsCreated"
PODS_PENDING: Final = "PodGangPodsCreationPending"
SCHEDULED: Final = "Scheduled"
REASON_WAITING_FOR_PODS: Final = "WaitingForPods"
REASON_WAITING_FOR_BASE: Final = "WaitingForBaseGang"
REASON_INSUFFICIENT: Final = "InsufficientCapacity"
REASON_FOREIGN_GATES: Final = "WaitingForOtherGates"
REASON_NOT_RESERVED: Final = "ReservationFailed"
REASON_LIFTING: Final = "Lifting"
REASON_BOUND: Final = "AllPodsBound"
