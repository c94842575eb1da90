"""The kinds of value a configuration holds: secrets, amounts, durations, addresses, endpoints, paths.

Validators raise ValueError with the rest of a sentence; `config.load` puts the key's path in front of it.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationInfo

from chain.types import Depth, FinalityRule, Tag
from executor.units import parse_address, parse_seconds, parse_wei

T = TypeVar("T")
NOT_SHOWN = "does not fit, and is not shown because it came from a file or the environment; check its source"
_TOKEN = re.compile(r"[A-Za-z0-9_~.+/=-]{20,}", re.ASCII)


class Referenced(str):
    """Text that came from `{ file = … }` or `{ env = … }`, not from the configuration file itself."""

    __slots__ = ()


class Secret:
    """Text that must not be shown: printed as ***, never pickled or copied; `reveal` is the one way to it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret text; hand it on, never log it."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Secret is not pickled or copied")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One node of a chain. `name` (host and port) may be shown and stored; the URL may hold a token and may not."""

    name: str
    url: Secret


def _refuse(sentence: str) -> NoReturn:
    raise ValueError(sentence)


def _secret(value: object) -> Secret:
    if not isinstance(value, Referenced):
        _refuse('must not stand in this file; write { file = "…" } or { env = "…" }')
    return Secret(value)


def _database_url(value: object) -> Secret:
    if not isinstance(value, str):
        _refuse('is not text; write postgresql://user@host/database or { file = "…" }')
    parts = _split(value)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ValueError("is not a PostgreSQL URL; write postgresql://user@host/database")
    query = {key.lower() for key, _ in parse_qsl(parts.query)}
    if not isinstance(value, Referenced) and (
        parts.password is not None or query & {"password", "passfile", "sslpassword"}
    ):
        raise ValueError('holds a password; move the whole URL to { file = "…" } or { env = "…" }')
    return Secret(value)


def _endpoint(value: object) -> Endpoint:
    if not isinstance(value, str):
        _refuse('is not text; write https://host or { file = "…" }')
    parts = _split(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("is not an http or https URL; write https://host or http://127.0.0.1:8545")
    segments = [*parts.path.split("/"), *(text for _, text in parse_qsl(parts.query)), parts.fragment]
    inline_token = "@" in parts.netloc or any(_TOKEN.fullmatch(segment) for segment in segments)
    if inline_token and not isinstance(value, Referenced):
        raise ValueError('holds a credential; move the whole URL to { file = "…" } or { env = "…" }')
    return Endpoint(parts.netloc.rpartition("@")[2], Secret(value))


def _split(url: str) -> Any:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("is not a URL; check its host and port") from None
    return parts


def _endpoints(value: object) -> object:
    if isinstance(value, Referenced):  # one file may hold them all, a line each
        value = [Referenced(line) for line in value.split()]
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError('is not a list of URLs; write ["https://host"]')
    return value


def _distinct(endpoints: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    """Two endpoints on one host get names that differ, since verdicts are stored by name."""
    named: list[Endpoint] = []
    for endpoint in endpoints:
        if any(endpoint.url == other.url for other in named):
            raise ValueError("names the same endpoint twice; drop one")
        count = sum(other.name.partition("#")[0] == endpoint.name for other in named)
        named.append(Endpoint(f"{endpoint.name}#{count + 1}", endpoint.url) if count else endpoint)
    return tuple(named)


def _integer(value: object) -> int:
    if isinstance(value, Referenced) and re.fullmatch(r"[0-9]{1,20}", value, re.ASCII):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        _refuse("is not a whole number; write it without quotes")
    return value


def _rule(value: object) -> FinalityRule:
    if isinstance(value, (Depth, Tag)):
        return value
    if isinstance(value, str) and value in {"safe", "finalized"}:
        return Tag("safe" if value == "safe" else "finalized")
    if isinstance(value, dict) and set(value) == {"depth"}:
        depth = _integer(value["depth"])
        if 0 <= depth < 2**31:
            return Depth(depth)
    raise ValueError('is no finality rule; write "finalized", "safe" or { depth = 20 }')


def _absolute(value: Path, info: ValidationInfo) -> Path:
    directory: Path = (info.context or {})["directory"]
    return directory / value.expanduser()


def _unquoted(parse: Callable[[object], T]) -> Callable[[object], T]:
    """`parse` whose errors quote what it read, made silent about text from a file or the environment."""

    def check(value: object) -> T:
        try:
            return parse(value)
        except ValueError:
            if isinstance(value, Referenced):
                _refuse(NOT_SHOWN)
            raise

    return check


def _listen(value: str) -> str:
    host, _, port = value.rpartition(":")
    if value and not (host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise ValueError('is not host:port; write "127.0.0.1:9108", or "" to listen nowhere')
    return value


Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Count = Annotated[int, BeforeValidator(_integer), Field(ge=1, lt=2**63)]
Wei = Annotated[int, BeforeValidator(_unquoted(parse_wei))]
Seconds = Annotated[float, BeforeValidator(_unquoted(parse_seconds))]
Address = Annotated[bytes, BeforeValidator(_unquoted(parse_address))]
Rule = Annotated[FinalityRule, BeforeValidator(_rule)]
ConfigPath = Annotated[Path, AfterValidator(_absolute)]
Listen = Annotated[str, AfterValidator(_listen)]
SecretText = Annotated[Secret, BeforeValidator(_secret)]
DatabaseUrl = Annotated[Secret, BeforeValidator(_database_url)]
Endpoints = Annotated[
    tuple[Annotated[Endpoint, BeforeValidator(_endpoint)], ...], BeforeValidator(_endpoints), AfterValidator(_distinct)
]
