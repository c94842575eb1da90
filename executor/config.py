"""`fenced.toml`, read once and validated into frozen objects.

    [service] name · [database] url or embedded · [worker] lease, listen, plan_timeout, rebroadcast, tick
    [chains.X] id, endpoints, final · [accounts.X] chain, address, signer, max_in_flight · [accounts.X.policy] …
    [strategies.X] plan, account, schedule or every, timezone, misfire, overlap, deadlines, input, params

Every mistake is a ConfigError of one sentence that begins with the key's path. Amounts and durations carry a unit in
the file and none here: `…_wei` and `…_seconds` say it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from executor.config_sections import (
    AccountConfig,
    ChainConfig,
    DatabaseConfig,
    KeyfileSigner,
    KeystoreSigner,
    PolicyConfig,
    Section,
    ServiceConfig,
    StrategyConfig,
    WorkerConfig,
    fault,
)
from executor.config_sources import Sources, parse_toml, read_toml
from executor.config_values import NOT_SHOWN, Endpoint, Name, Secret
from executor.errors import ConfigError

__all__ = [
    "AccountConfig",
    "ChainConfig",
    "Config",
    "DatabaseConfig",
    "Endpoint",
    "KeyfileSigner",
    "KeystoreSigner",
    "PolicyConfig",
    "Secret",
    "ServiceConfig",
    "StrategyConfig",
    "WorkerConfig",
    "load",
    "parse",
    "strategy_digest",
]


class Config(Section):
    """The whole configuration. `directory` is where the file lies: relative paths and plan modules start there."""

    model_config = ConfigDict(title="fenced.toml")

    service: ServiceConfig
    database: DatabaseConfig
    worker: WorkerConfig = Field(default_factory=WorkerConfig)
    chains: dict[Name, ChainConfig]
    accounts: dict[Name, AccountConfig] = Field(default_factory=dict)
    strategies: dict[Name, StrategyConfig] = Field(default_factory=dict)
    _directory: Path = Path()

    @property
    def directory(self) -> Path:
        """The directory of the configuration file, absolute."""
        return self._directory

    def model_post_init(self, context: Any) -> None:
        """Keep the directory that relative paths start from."""
        self._directory = context["directory"]

    def chain_of(self, account: str) -> ChainConfig:
        """The chain of the account named `account`. Raises KeyError for an unknown name."""
        return self.chains[self.accounts[account].chain]

    def account_of(self, strategy: str) -> AccountConfig:
        """The account of the strategy named `strategy`. Raises KeyError for an unknown name."""
        return self.accounts[self.strategies[strategy].account]

    @model_validator(mode="after")
    def _references(self) -> Config:
        ids: dict[int, str] = {}
        for name, chain in self.chains.items():
            other = ids.setdefault(chain.id, name)
            if other != name:
                raise fault(f"chains.{name}.id", f"is the id of chains.{other} too; keep one of them")
            if self.database.embedded and not chain.is_development:
                raise fault(
                    "database.embedded",
                    f"is for development chains only, and chains.{name} has id {chain.id}; write url",
                )
        owners: dict[tuple[str, bytes], str] = {}
        for name, account in self.accounts.items():
            self._check_account(name, account)
            other = owners.setdefault((account.chain, account.address), name)
            if other != name:
                raise fault(f"accounts.{name}.address", f"is the address of accounts.{other} too; keep one of them")
        for name, strategy in self.strategies.items():
            if strategy.account not in self.accounts:
                raise fault(f"strategies.{name}.account", _unknown("account", strategy.account, self.accounts))
        return self

    def _check_account(self, name: str, account: AccountConfig) -> None:
        chain = self.chains.get(account.chain)
        if chain is None:
            raise fault(f"accounts.{name}.chain", _unknown("chain", account.chain, self.chains))
        if isinstance(account.signer, KeyfileSigner) and not (account.signer.insecure or chain.is_development):
            raise fault(
                f"accounts.{name}.signer.kind",
                "keyfile keeps the key in plain text; use a keystore off development chains",
            )


def load(path: Path) -> Config:
    """The configuration in the file `path`.

    Raises:
        ConfigError: the file cannot be read, or something in it is wrong; one sentence with the key's path.
    """
    absolute = path.absolute()
    return parse(read_toml(path), absolute.parent, name=path.name)


def parse(
    text: str, directory: Path, *, name: str = "fenced.toml", environment: Mapping[str, str] | None = None
) -> Config:
    """The configuration that `text` holds, with paths relative to `directory`. Raises ConfigError."""
    sources = Sources(directory.absolute(), os.environ if environment is None else environment)
    tables = sources.resolve(parse_toml(text, name))
    try:
        return Config.model_validate(tables, context={"directory": sources.directory})
    except ValidationError as error:
        raise ConfigError(_sentence(error.errors(include_url=False)[0], sources)) from None


def strategy_digest(config: Config, name: str, source: bytes, release: str) -> str:
    """The revision of a strategy, as hex: its settings, its account, its module's file and our release.

    Two replicas with the same file, module and release have the same revision, wherever they are installed.
    """
    strategy, account = config.strategies[name], config.account_of(name)
    settings = strategy.model_dump(mode="json", exclude={"input"})
    settings["input"] = None if strategy.input is None else os.path.relpath(strategy.input.file, config.directory)
    identity = {
        "strategy": name,
        "settings": settings,
        "account": [config.chain_of(strategy.account).id, account.address.hex()],
        "source": hashlib.sha256(source).hexdigest(),
        "release": release,
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _unknown(kind: str, name: str, known: Mapping[str, Any]) -> str:
    return f'names the unknown {kind} "{name}"; known are: {", ".join(sorted(known)) or "none"}'


def _sentence(error: ErrorDetails, sources: Sources) -> str:
    context = error.get("ctx", {})
    path = _path(error["loc"], str(context.get("key", "")))
    match error["type"]:
        case "missing":
            rest = "is missing; write it"
        case "union_tag_invalid" | "union_tag_not_found":
            path, rest = f"{path}.kind", 'is no known kind of signer; write "keystore" or "keyfile"'
        case "value_error":
            rest = str(context["error"])
        case "string_pattern_mismatch":
            rest = "is not a name; use a to z, 0 to 9, - and _, at most 63 characters"
        case "fault":
            rest = str(context["sentence"])
        case _:
            rest = f"does not fit ({error['msg'][:1].lower()}{error['msg'][1:]}); correct it"
    if sources.mentions_reference(rest):
        rest = NOT_SHOWN
    return f"{path}: {rest.rstrip('.')}{'' if rest.endswith('?') else '.'}"


def _path(location: tuple[int | str, ...], key: str) -> str:
    """The key's path as a person would find it: `chains.base.endpoints[0]`."""
    parts = [part for part in location if part != "[key]"]
    tags = {"keystore", "keyfile"}
    parts = [part for at, part in enumerate(parts) if not (part in tags and at and parts[at - 1] == "signer")]
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    if key:
        text += f".{key}"
    return text.removeprefix(".") or "the file"
