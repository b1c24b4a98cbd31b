"""What cert-manager and Prometheus' operator take of what the chart writes for them.

No lab has their definitions. These models hold the fields that the chart uses, with types and
choices as those projects publish them, and nothing else: a field that is not here is refused.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from api.jsons import Json, JsonObject

CERTIFICATES: Final = "cert-manager.io"
MONITORING: Final = "monitoring.coreos.com"
GROUPS: Final = {CERTIFICATES, MONITORING}

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
LabelValue = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([-\w.]*[A-Za-z0-9])?)?$", max_length=63)]
# Go's durations and Prometheus' differ; of either, the chart uses what both know.
Hours = Annotated[str, Field(pattern=r"^[1-9][0-9]*h$")]
Period = Annotated[str, Field(pattern=r"^[0-9]+(ms|s|m|h)$")]
Words = Annotated[str, Field(min_length=1)]


class Part(BaseModel):
    """A piece of such an object: nothing unknown, and no text where a number belongs."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)


class Metadata(Part):
    """What we say of each."""

    name: Name
    namespace: Name
    labels: dict[str, LabelValue]


class PrivateKey(Part):
    """How a certificate's key is made."""

    algorithm: Literal["ECDSA"]
    size: Literal[256, 384, 521]
    rotation_policy: Literal["Never", "Always"]


class IssuerRef(Part):
    """Who signs."""

    group: Literal["cert-manager.io"]
    kind: Literal["Issuer", "ClusterIssuer"]
    name: Name


class CertificateSpec(Part):
    """A certificate in a Secret, for an authority or for names."""

    secret_name: Name
    issuer_ref: IssuerRef
    duration: Hours
    renew_before: Hours
    private_key: PrivateKey
    is_ca: Annotated[bool, Field(alias="isCA")] = False
    common_name: Annotated[str, Field(max_length=64)] = ""
    dns_names: list[Name] = []
    usages: list[
        Literal["digital signature", "key encipherment", "server auth", "client auth", "cert sign"]
    ] = []

    @model_validator(mode="after")
    def _is_of_somebody_and_renewed_in_time(self) -> Self:
        if not self.common_name and not self.dns_names:
            raise ValueError("is for nobody: it has neither commonName nor dnsNames")
        if int(self.renew_before[:-1]) >= int(self.duration[:-1]):
            raise ValueError("renewBefore is not before its end")
        return self


class Certificate(Part):
    """cert-manager's Certificate."""

    api_version: Literal["cert-manager.io/v1"]
    kind: Literal["Certificate"]
    metadata: Metadata
    spec: CertificateSpec


class SelfSigned(Part):
    """Each certificate signs itself."""

    self_signed: Annotated[dict[str, str], Field(max_length=0)]


class Secret(Part):
    """Where an authority is."""

    secret_name: Name


class Authority(Part):
    """An authority in a Secret signs."""

    ca: Secret


class Issuer(Part):
    """cert-manager's Issuer, of exactly one sort."""

    api_version: Literal["cert-manager.io/v1"]
    kind: Literal["Issuer"]
    metadata: Metadata
    spec: SelfSigned | Authority


class Selector(Part):
    """Which Services are meant."""

    match_labels: Annotated[dict[str, LabelValue], Field(min_length=1)]


class Namespaces(Part):
    """Where they are."""

    match_names: Annotated[list[Name], Field(min_length=1)]


class Endpoint(Part):
    """What is collected of them: the port is one of the Service's, by its name."""

    path: Annotated[str, Field(pattern="^/")]
    interval: Period
    port: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=15)]


class ServiceMonitorSpec(Part):
    """Where metrics are collected."""

    selector: Selector
    namespace_selector: Namespaces
    endpoints: Annotated[list[Endpoint], Field(min_length=1)]


class ServiceMonitor(Part):
    """The operator's ServiceMonitor."""

    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["ServiceMonitor"]
    metadata: Metadata
    spec: ServiceMonitorSpec


class Alert(Part):
    """A rule that fires; whether its expression is one, promtool says."""

    alert: Words
    expr: Words
    for_: Annotated[Period, Field(alias="for")] = "0s"
    labels: dict[str, Words]
    annotations: dict[str, Words]


class Rules(Part):
    """Rules under one name, which no two groups share."""

    name: Words
    rules: Annotated[list[Alert], Field(min_length=1)]


class PrometheusRuleSpec(Part):
    """All groups."""

    groups: Annotated[list[Rules], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if len({each.name for each in self.groups}) < len(self.groups):
            raise ValueError("two groups have one name")
        return self


class PrometheusRule(Part):
    """The operator's PrometheusRule."""

    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["PrometheusRule"]
    metadata: Metadata
    spec: PrometheusRuleSpec


KINDS: Final[Mapping[str, type[Part]]] = {
    each.__name__: each for each in (Certificate, Issuer, ServiceMonitor, PrometheusRule)
}


def group(each: Mapping[str, Json]) -> str:
    """Give the API group of an object."""
    return str(each["apiVersion"]).rpartition("/")[0]


def check(each: JsonObject) -> None:
    """Raise ValueError unless its operator would take it."""
    kind = KINDS.get(str(each["kind"]))
    if kind is None:
        raise ValueError(f"no model of the kind {each['kind']}")
    kind.model_validate(each)
