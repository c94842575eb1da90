"""genesis.json as geth reads it: accounts, fields of the first header, and in `config` when the forks begin.

Every problem is a StartError with one sentence that names the field.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from devnet.errors import StartError
from devnet.evm.forks import BY_NAME, FORKS, PARIS, BlobSchedule, Fork, Schedule
from devnet.evm.system_contracts import DEPOSIT_CONTRACT
from devnet.genesis import Allocation, Genesis

JsonObject: TypeAlias = "Mapping[str, object]"

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
# Names in `config` that look like forks and change no rule here: the DAO fork moved accounts of mainnet, the netsplit
# block only tells peers apart, EIP-155 came with EIP-158.
_MARKS = ("daoForkBlock", "mergeNetsplitBlock", "eip155Block")
_NEVER = 2**63  # generators of genesis files write such a start for a fork that is not to come
_EXTRA_BLOB_FORKS = ("bpo3", "bpo4", "bpo5")


def read_json(path: str) -> JsonObject:
    """The JSON object in a file. Raises StartError."""
    try:
        content = json.loads(Path(path).read_bytes())
    except OSError as problem:
        raise StartError(f"cannot read {path}: {problem.strerror or problem}") from None
    except ValueError as problem:
        raise StartError(f"{path} is no JSON: {problem}") from None
    if not isinstance(content, dict):
        raise StartError(f"{path} holds no JSON object")
    return content


def read_genesis(path: str) -> Genesis:
    """Read genesis.json. Raises StartError."""
    try:
        return parse_genesis(read_json(path))
    except _FieldError as problem:
        raise StartError(f"{path}: {problem}") from None


class _FieldError(StartError):
    """A field that is missing or malformed; the text begins with its name."""


class _Fields:
    """A JSON object read by names in any letter case, as Go does; complaints begin with the path of the field."""

    def __init__(self, path: str, value: object) -> None:
        if not isinstance(value, dict):
            raise _FieldError(f"{path or 'genesis'} is no object")
        self._path = path
        self._values = {str(key).lower(): (str(key), item) for key, item in value.items()}

    def items(self) -> list[tuple[str, object]]:
        """Names as written, and values."""
        return list(self._values.values())

    def get(self, name: str) -> object:
        """The value, None where it is null or missing."""
        return self._values.get(name.lower(), (name, None))[1]

    def at(self, name: str) -> str:
        """The field's name for a complaint."""
        return f"{self._path}.{name}" if self._path else name

    def optional_number(self, name: str) -> int | None:
        """A number in hex or decimal, as JSON number or text."""
        value = self.get(name)
        return None if value is None else _number(self.at(name), value)

    def number(self, name: str, default: int | None = None) -> int:
        """As `optional_number`; a missing one is `default`, or a complaint."""
        value = self.optional_number(name)
        if value is None and default is None:
            raise _FieldError(f"{self.at(name)} is missing")
        return value if value is not None else default or 0

    def data(self, name: str, size: int | None = None) -> bytes:
        """Bytes in hex; missing ones are empty, or zeros of that size."""
        value = self.get(name)
        return bytes(size or 0) if value is None else _data(self.at(name), value, size)


def _number(path: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value, 16 if value[:2] in {"0x", "0X"} else 10)
    raise _FieldError(f"{path} is no number: {value!r}")


def _data(path: str, value: object, size: int | None = None) -> bytes:
    try:
        if not isinstance(value, str):
            raise TypeError
        raw = bytes.fromhex(value[2:] if value[:2] in {"0x", "0X"} else value)
    except (TypeError, ValueError):
        raise _FieldError(f"{path} is not in hex: {value!r}") from None
    if size is not None and len(raw) != size:
        raise _FieldError(f"{path} has {len(raw)} bytes, want {size}")
    return raw


def parse_genesis(content: object) -> Genesis:
    """Read the object of genesis.json. Raises StartError with the name of the field that is wrong."""
    fields = _Fields("", content)
    for name, empty in (("number", 0), ("gasUsed", 0)):
        if fields.number(name, empty) != empty:
            raise _FieldError(f"{name} must be 0: a chain begins with block 0")
    if any(fields.data("parentHash", 32)):
        raise _FieldError("parentHash must be zero: a chain begins with block 0")
    config = _Fields("config", fields.get("config"))
    deposits = config.get("depositContractAddress")
    return Genesis(
        chain_id=config.number("chainId"),
        schedule=_schedule(config),
        alloc=_alloc(fields.get("alloc")),
        gas_limit=fields.number("gasLimit"),
        difficulty=fields.number("difficulty", 0),
        timestamp=fields.number("timestamp", 0),
        extra_data=fields.data("extraData"),
        coinbase=fields.data("coinbase", 20),
        mix_hash=fields.data("mixHash", 32),
        nonce=fields.number("nonce", 0).to_bytes(8, "big"),
        base_fee=fields.optional_number("baseFeePerGas"),
        excess_blob_gas=fields.optional_number("excessBlobGas"),
        blob_gas_used=fields.optional_number("blobGasUsed"),
        marks=frozenset(filter(None, (config.optional_number(name) for name in _MARKS))),
        deposit_contract=DEPOSIT_CONTRACT if deposits is None else config.data("depositContractAddress", 20),
    )


def _alloc(value: object) -> dict[bytes, Allocation]:
    alloc = {}
    for name, account in _Fields("alloc", value).items():
        path = f"alloc.{name}"
        fields = _Fields(path, account)
        storage = fields.get("storage")
        alloc[_data(path, name, 20)] = Allocation(
            balance=fields.number("balance", 0),
            nonce=fields.number("nonce", 0),
            code=fields.data("code"),
            storage={
                int.from_bytes(_data(f"{path}.storage", slot), "big"): int.from_bytes(
                    _data(f"{path}.{slot}", word), "big"
                )
                for slot, word in (() if storage is None else _Fields(f"{path}.storage", storage).items())
            },
        )
    return alloc


def _schedule(config: _Fields) -> Schedule:
    """The forks of `config`: one whose activation is null or missing never comes (geth: params.ChainConfig)."""
    forks = [fork for fork in FORKS if fork.key and fork != PARIS]
    forks += [replace(FORKS[-1], name=name.capitalize(), key=f"{name}Time") for name in _EXTRA_BLOB_FORKS]
    known = {fork.key.lower() for fork in forks} | {name.lower() for name in _MARKS}
    for name, value in config.items():
        if not name.endswith(("Block", "Time")) or value is None or name.lower() in known:
            continue
        if config.number(name) < _NEVER:
            raise _FieldError(f"config.{name} is a fork this devnet does not know: take it out")
    starts = [(start, fork) for fork in forks if (start := config.optional_number(fork.key)) is not None]
    petersburg, constantinople = BY_NAME["petersburg"], BY_NAME["constantinople"]
    if config.get(petersburg.key) is None and (start := config.optional_number(constantinople.key)) is not None:
        starts.append((start, petersburg))  # geth: no Petersburg of its own means with Constantinople
    blobs = config.get("blobSchedule")
    times = [(start, _with_blobs(fork, blobs)) for start, fork in starts if fork > PARIS]
    blocks = [(start, fork) for start, fork in starts if fork < PARIS]
    terminal = config.optional_number("terminalTotalDifficulty")
    if times and terminal is None:
        raise _FieldError(f"config.terminalTotalDifficulty is missing, and {times[0][1].key} needs it")

    def order(entry: tuple[int, Fork]) -> tuple[int, int]:
        return entry[0], entry[1].rank

    return Schedule(tuple(sorted(blocks, key=order)), tuple(sorted(times, key=order)), terminal)


def _with_blobs(fork: Fork, schedule: object) -> Fork:
    """The fork with the blob schedule the file gives it; without one it has mainnet's."""
    own = None if schedule is None else _Fields("config.blobSchedule", schedule).get(fork.name)
    if own is None or fork.blobs is None:
        return fork
    fields = _Fields(f"config.blobSchedule.{fork.name.lower()}", own)
    return replace(
        fork,
        blobs=BlobSchedule(
            target=fields.number("target"),
            max=fields.number("max"),
            base_fee_update_fraction=fields.number("baseFeeUpdateFraction"),
        ),
    )
