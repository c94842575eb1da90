"""The sections of `fenced.toml` as frozen objects: amounts in wei, durations in seconds, addresses as 20 bytes.

A section checks itself; what needs two sections (a reference, a rule about chain ids) is checked by `Config`.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from chain.types import Depth
from executor.config_values import (
    Address,
    ConfigPath,
    Count,
    DatabaseUrl,
    Endpoints,
    Listen,
    Name,
    Rule,
    Seconds,
    SecretText,
    Wei,
)
from executor.errors import ConfigError
from executor.recurrence import Cron, Every, recurrence_of
from executor.timezones import load_zone

DEVELOPMENT_CHAINS: Final = frozenset({31337, 1337})
_PLAN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def fault(key: str, sentence: str) -> PydanticCustomError:
    """The error for `key` below the section being checked; `sentence` goes on after the key's path."""
    return PydanticCustomError("fault", "{sentence}", {"key": key, "sentence": sentence})


_OWN_PACKAGES = {"chain", "signer", "executor", "devnet"}


class Section(BaseModel):
    """A table of the file. Unknown keys are refused with the nearest known one."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise PydanticCustomError("fault", "{sentence}", {"sentence": "is not a table; write it as one"})
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in value:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"known keys are {', '.join(known)}"
                raise fault(str(key), f"is not a known key; {hint}")
        return value


class ServiceConfig(Section):
    """Whose installation this is; a database of another name is refused."""

    name: Name


class DatabaseConfig(Section):
    """Where the rows live: a server's URL, or a server of our own for development chains."""

    url: DatabaseUrl | None = None
    embedded: bool = False
    state_dir: ConfigPath = Field(default=Path(".fenced"), validate_default=True)

    @model_validator(mode="after")
    def _one_place(self) -> DatabaseConfig:
        if self.embedded and self.url is not None:
            raise fault("embedded", "stands beside url; drop one of the two")
        if not self.embedded and self.url is None:
            raise fault("url", 'is missing; write url = { file = "…" }, or embedded = true for a development chain')
        return self


class WorkerConfig(Section):
    """How a worker behaves; all durations in seconds. `listen` is host:port, or "" for nowhere."""

    lease_seconds: Seconds = Field(default=30.0, alias="lease", ge=2)
    listen: Listen = "127.0.0.1:9108"
    plan_timeout_seconds: Seconds = Field(default=10.0, alias="plan_timeout", ge=0.1, le=3_600)
    rebroadcast_seconds: Seconds = Field(default=12.0, alias="rebroadcast", ge=0.1)
    tick_seconds: Seconds = Field(default=0.2, alias="tick", ge=0.01, le=60)


class ChainConfig(Section):
    """A chain, its nodes and its rule of finality; only development chains have a default (depth 0)."""

    id: Count
    endpoints: Endpoints
    final: Rule

    @model_validator(mode="before")
    @classmethod
    def _finality(cls, value: Any) -> Any:
        if isinstance(value, dict) and "final" not in value and "id" in value:
            if str(value["id"]) not in map(str, DEVELOPMENT_CHAINS):
                raise fault("final", 'is missing; write "finalized", "safe" or { depth = 20 }')
            return {**value, "final": Depth(0)}
        return value

    @property
    def is_development(self) -> bool:
        """Whether the chain is one of 31337 and 1337, where money has no value."""
        return self.id in DEVELOPMENT_CHAINS


class KeystoreSigner(Section):
    """A key in an encrypted keystore v3 file."""

    kind: Literal["keystore"]
    path: ConfigPath
    password: SecretText
    allow_weak_kdf: bool = False


class KeyfileSigner(Section):
    """A key in a plain file: development chains only, unless `insecure` says otherwise."""

    kind: Literal["keyfile"]
    path: ConfigPath
    insecure: bool = False


class PolicyConfig(Section):
    """What the signer refuses to sign beyond; None means no limit of its own. Amounts in wei, gas in units."""

    max_fee_per_gas_wei: Wei = Field(alias="max_fee_per_gas", gt=0)
    max_priority_fee_per_gas_wei: Wei | None = Field(default=None, alias="max_priority_fee_per_gas")
    max_value_wei: Wei | None = Field(default=None, alias="max_value")
    max_gas: Count | None = Field(default=None, ge=21_000)  # a cancel takes 21,000
    allow_to: tuple[Address, ...] | None = None
    allow_create: bool = False

    @model_validator(mode="after")
    def _tip_below_fee(self) -> PolicyConfig:
        if (
            self.max_priority_fee_per_gas_wei is not None
            and self.max_priority_fee_per_gas_wei > self.max_fee_per_gas_wei
        ):
            raise fault("max_priority_fee_per_gas", "is above max_fee_per_gas; lower it")
        return self


class AccountConfig(Section):
    """One wallet on one chain: the thing a lease covers."""

    chain: Name
    address: Address
    signer: Annotated[KeystoreSigner | KeyfileSigner, Field(discriminator="kind")]
    max_in_flight: Count = Field(default=16, le=1_000)
    policy: PolicyConfig


class InputFile(Section):
    """Where a strategy's input is read when an execution is made; a JSON file."""

    file: ConfigPath

    def read(self) -> Any:
        """The JSON value in the file now. Raises ConfigError when it cannot be read."""
        try:
            return json.loads(self.file.read_text(encoding="utf-8"), parse_constant=_no_constant)
        except OSError as error:
            raise ConfigError(f"The input {self.file.name} cannot be read ({error.strerror}); create it.") from None
        except ValueError as error:
            raise ConfigError(f"The input {self.file.name} is not JSON ({error}); correct it.") from None


class StrategyConfig(Section):
    """A registered strategy: its function, its account and when it is due. Durations in seconds."""

    plan: str
    account: Name
    schedule: str | None = None
    every_seconds: Seconds | None = Field(default=None, alias="every")
    timezone: str = "UTC"
    misfire: Literal["latest", "skip", "all"] | None = None
    overlap: Literal["skip", "allow"] = "skip"
    start_deadline_seconds: Seconds | None = Field(default=None, alias="start_deadline", gt=0)
    inclusion_deadline_seconds: Seconds | None = Field(default=None, alias="inclusion_deadline", gt=0)
    input: InputFile | None = None
    params: dict[str, Any] = Field(default_factory=dict)

    @field_validator("plan")
    @classmethod
    def _plan(cls, value: str) -> str:
        if _PLAN.fullmatch(value) is None:
            raise ValueError('is not module.path:function; write, for example, "strategies.payroll:plan"')
        if value.partition(":")[0].partition(".")[0] in _OWN_PACKAGES:
            raise ValueError("names a package of this program; call your module otherwise")
        return value

    @field_validator("params")
    @classmethod
    def _params(cls, value: dict[str, Any]) -> dict[str, Any]:
        odd = _not_json(value)
        if odd is not None:
            raise fault(odd, "is neither text, number, truth value, list nor table; write it as text")
        return value

    @field_validator("inclusion_deadline_seconds")
    @classmethod
    def _no_inclusion_deadline(cls, value: float | None) -> float | None:
        # It would be silently ignored: what carries it out (cancel by deadline) is not in this version.
        if value is not None:
            raise ValueError("is not carried out by this version; leave it out")
        return value

    @model_validator(mode="after")
    def _times(self) -> StrategyConfig:
        if self.schedule is not None and self.every_seconds is not None:
            raise fault("every", "stands beside schedule; drop one of the two")
        for key, make in (
            ("timezone", lambda: load_zone(self.timezone)),
            ("every" if self.schedule is None else "schedule", self.recurrence),
        ):
            try:
                make()
            except ConfigError as error:
                raise fault(key, str(error)) from None
        if self.recurrence() is not None and self.misfire is None:
            raise fault(
                "misfire", 'is missing; say what happens to slots missed in downtime: "latest", "skip" or "all"'
            )
        return self

    def recurrence(self) -> Cron | Every | None:
        """When the strategy is due; None means only by trigger."""
        return recurrence_of(self.schedule, self.every_seconds, self.timezone)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _not_json(value: Any, path: str = "") -> str | None:
    """The path of the first value that JSON cannot carry, such as a TOML date."""
    if isinstance(value, dict):
        return next((odd for key, item in value.items() if (odd := _not_json(item, f"{path}.{key}"))), None)
    if isinstance(value, list):
        return next((odd for at, item in enumerate(value) if (odd := _not_json(item, f"{path}[{at}]"))), None)
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return None
    return path.removeprefix(".")
