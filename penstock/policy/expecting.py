"""What is expected of a policy, in a file: who applies what, and what is to become of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import orjson
import yaml
from pydantic import Field, ValidationError

from penstock.policy.files import BadFileError, read_text
from policies.admission import User
from policies.policy_queues import PolicyModel
from policies.trying import Submitter, Tried
from policies.verdicts import Decision, Verdict

ALL: Final = "system:authenticated"
ACCOUNT: Final = "system:serviceaccount:"
ACCOUNTS: Final = "system:serviceaccounts"


class Expected(PolicyModel):
    """One expectation. What is left out is as the command line has it."""

    kind: str
    name: str
    user: str = ""
    groups: tuple[str, ...] = ()
    namespace: str = ""
    decision: Decision
    rules: Annotated[
        tuple[str, ...] | None, Field(description="Exactly these are broken; left out for any.")
    ] = None

    @property
    def title(self) -> str:
        """Say what is expected, as a sentence of a report."""
        where = f" in {self.namespace}" if self.namespace else ""
        who = f" by {self.user}" if self.user else ""
        return f"{self.kind} {self.name}{where}{who}: {self.decision}"

    def is_about(self, tried: Tried) -> bool:
        """Whether this object is meant."""
        return (tried.kind, tried.name) == (self.kind, self.name)

    def submitter(self, otherwise: Submitter) -> Submitter:
        """Give who applies it, and where."""
        user = user_of(self.user, self.groups) if self.user else otherwise.user
        return Submitter(user, self.namespace or otherwise.namespace)

    def complaint(self, found: Verdict) -> str:
        """Say how it came otherwise; empty if it did not."""
        said: list[str] = []
        if found.decision is not self.decision:
            said.append(f"expected {self.decision}, got {found.decision}")
        if self.rules is not None and sorted(self.rules) != sorted(found.rules):
            wanted, got = (", ".join(sorted(each)) or "none" for each in (self.rules, found.rules))
            said.append(f"expected the rules {wanted}, got {got}")
        return "; ".join(said)


class _Expectations(PolicyModel):
    expected: Annotated[list[Expected], Field(min_length=1)]


def user_of(name: str, groups: Sequence[str]) -> User:
    """Give a user with the groups that the API server adds by itself."""
    added = [ALL]
    if name.startswith(ACCOUNT):
        namespace = name.removeprefix(ACCOUNT).partition(":")[0]
        added = [ACCOUNTS, f"{ACCOUNTS}:{namespace}", ALL]
    return User(name, tuple(dict.fromkeys((*groups, *added))))


def read(path: Path) -> list[Expected]:
    """Read a file of expectations; raises BadFileError."""
    try:
        document = yaml.safe_load(read_text(path))
        return _Expectations.model_validate_json(orjson.dumps(document)).expected
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BadFileError(f"{path}: {where}: {first['msg']}") from error
    except (yaml.YAMLError, TypeError) as error:
        raise BadFileError(f"{path}: {' '.join(str(error).split())}") from error
