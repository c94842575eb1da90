"""The one face a strategy imports: what it is given, and what it may return.

    from executor.strategy import Call, Context, Plan, nothing

    def plan(ctx: Context) -> Plan:
        if not ctx.input:
            return nothing("no invoice is due")
        return Call("0x70997970C51812dc3A010C7d01b50e0d17dc79C8", 10**18, once="invoice/8812")

A strategy is a pure function and may be run again: it decides, the executor sends. It returns `nothing(reason)`,
one `Call`, `together(calls)` or `in_order(calls)`. Values are checked as they are made, so the traceback points at
the line that is wrong. Nothing here knows keys, nonces, fees or a database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from executor.strategy_context import ChainReader, ChainUnreachable, Context
from executor.units import UINT256_MAX, parse_address

__all__ = [
    "Call",
    "ChainReader",
    "ChainUnreachable",
    "Context",
    "InOrder",
    "InvalidPlan",
    "Nothing",
    "Plan",
    "Together",
    "erc20_transfer",
    "in_order",
    "nothing",
    "together",
]

MAX_CALLS: Final = 100
MAX_DATA_BYTES: Final = 128 * 1024
MAX_TEXT: Final = 200
_TRANSFER: Final = bytes.fromhex("a9059cbb")
_TEXT_AS_BYTES: Final = 'is text; pass bytes, for example bytes.fromhex(text.removeprefix("0x"))'


class InvalidPlan(ValueError, TypeError):
    """A strategy made a value no chain can carry, or returned something that is no plan; one sentence says which."""


@dataclass(frozen=True)
class Call:
    """One wanted call from the strategy's account.

    Args:
        to: the receiver, spelled with its EIP-55 checksum; None only with `create=True`.
        value: wei, a whole number.
        data: call data as bytes.
        once: the user's name for the thing paid ("invoice/8812"); sent at most once in the installation (G2b).
        gas: gas limit in gas units; left out, it is estimated.
        access_list: pairs of (address, storage keys of 32 bytes).
        label: words for people, shown beside the call.
        create: this call creates a contract; refused unless the account's policy says `allow_create`.

    Raises:
        InvalidPlan: a value is of another type, out of range, or a mistyped address.
    """

    to: str | None
    value: int = 0
    data: bytes = b""
    once: str | None = field(default=None, kw_only=True)
    gas: int | None = field(default=None, kw_only=True)
    access_list: Sequence[tuple[str, Sequence[bytes]]] = field(default=(), kw_only=True)
    label: str | None = field(default=None, kw_only=True)
    create: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.create:
            if self.to is not None:
                raise InvalidPlan("Call.to must be None with create=True; drop one of the two.")
            if not self.data:
                raise InvalidPlan("Call.data is empty with create=True; pass the contract's creation code.")
        else:
            _address("Call.to", self.to)
        _integer("Call.value", self.value, 0, UINT256_MAX, "wei")
        if self.gas is not None:
            _integer("Call.gas", self.gas, 21_000, 2**63 - 1, "gas units")
        object.__setattr__(self, "data", _data(self.data))
        object.__setattr__(self, "access_list", _access_list(self.access_list))
        for name, text in (("once", self.once), ("label", self.label)):
            if text is not None:
                _words(f"Call.{name}", text)


@dataclass(frozen=True)
class Nothing:
    """No call this time; made by `nothing(reason)`."""

    reason: str


@dataclass(frozen=True)
class Together:
    """Calls without an order; made by `together(calls)`."""

    calls: tuple[Call, ...]


@dataclass(frozen=True)
class InOrder:
    """Calls in order; made by `in_order(calls)`."""

    calls: tuple[Call, ...]
    after: Literal["final", "mined"]


Plan: TypeAlias = Call | Nothing | Together | InOrder


def nothing(reason: str) -> Nothing:
    """A plan without calls; `reason` is recorded with the execution. Raises InvalidPlan on an empty reason."""
    _words("the reason of nothing()", reason)
    return Nothing(reason)


def together(calls: Iterable[Call]) -> Together:
    """A plan whose calls are all reserved at once, in this nonce order. Raises InvalidPlan on none or over 100."""
    return Together(_calls("together", calls))


def in_order(calls: Iterable[Call], after: Literal["final", "mined"] = "final") -> InOrder:
    """A plan whose calls wait for the one before to be final with success, or only mined (faster, riskier: P17).

    Raises:
        InvalidPlan: no calls, more than 100, or another `after`.
    """
    if after not in {"final", "mined"}:
        raise InvalidPlan('in_order(after=…) must be "final" or "mined"; use "final" unless a reorg cannot hurt.')
    return InOrder(_calls("in_order", calls), after)


def erc20_transfer(
    token: str, recipient: str, amount: int, *, once: str | None = None, label: str | None = None
) -> Call:
    """The call that moves `amount` smallest units of the ERC-20 `token` to `recipient`. Raises InvalidPlan."""
    receiver = _address("erc20_transfer(recipient)", recipient)
    _integer("erc20_transfer(amount)", amount, 0, UINT256_MAX, "smallest units of the token")
    return Call(token, 0, _TRANSFER + receiver.rjust(32, b"\0") + amount.to_bytes(32), once=once, label=label)


def _calls(name: str, calls: Iterable[Call]) -> tuple[Call, ...]:
    if isinstance(calls, Call) or not isinstance(calls, Iterable):
        raise InvalidPlan(f"{name}() takes a list of Call, not {_kind(calls)}; return one Call by itself.")
    made: list[Call] = []
    for call in calls:
        if not isinstance(call, Call):
            raise InvalidPlan(f"{name}() holds {_kind(call)} at position {len(made)}; put only Call in it.")
        if len(made) == MAX_CALLS:
            raise InvalidPlan(f"{name}() has more than {MAX_CALLS} calls; split them over several slots or triggers.")
        made.append(call)
    if not made:
        raise InvalidPlan(f'{name}() is empty; return nothing("why") when there is nothing to do.')
    return tuple(made)


def _address(what: str, value: object) -> bytes:
    try:
        return parse_address(value)
    except ValueError as error:
        sentence = str(error)
    except TypeError:  # an unhashable value
        sentence = f"{_kind(value)} is not an address; write 0x and 40 hex digits"
    raise InvalidPlan(f"{what}: {sentence}.") from None


def _integer(what: str, value: object, least: int, most: int, unit: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidPlan(f"{what} is {_kind(value)}; pass a whole number of {unit} as int.")
    if not least <= value <= most:
        side = f"below {least}" if value < least else "more than a chain can hold"
        raise InvalidPlan(f"{what} is {side}; pass between {least} and {most:.6g} {unit}.")


def _data(value: object) -> bytes:
    if isinstance(value, str):
        raise InvalidPlan(f"Call.data {_TEXT_AS_BYTES}.")
    if not isinstance(value, (bytes, bytearray)):
        raise InvalidPlan(f"Call.data is {_kind(value)}; pass bytes.")
    if len(value) > MAX_DATA_BYTES:
        raise InvalidPlan(f"Call.data is longer than {MAX_DATA_BYTES} bytes; no node takes such a transaction.")
    return bytes(value)


def _access_list(entries: object) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    if not isinstance(entries, Sequence) or isinstance(entries, (str, bytes)):
        raise InvalidPlan(f"Call.access_list is {_kind(entries)}; pass pairs of (address, storage keys).")
    made = []
    for entry in entries:
        if not isinstance(entry, Sequence) or len(entry) != 2 or not isinstance(entry[1], Sequence):
            raise InvalidPlan("Call.access_list holds something else than a pair; pass (address, storage keys).")
        address, keys = entry
        _address("Call.access_list", address)
        if isinstance(keys, (str, bytes)) or any(not isinstance(key, bytes) or len(key) != 32 for key in keys):
            raise InvalidPlan("Call.access_list has a storage key that is not 32 bytes; pass a list of bytes.")
        made.append((address, tuple(bytes(key) for key in keys)))
    return tuple(made)


def _words(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise InvalidPlan(f"{what} is {_kind(text)}; pass text.")
    if not text.strip() or len(text) > MAX_TEXT or not text.isprintable():
        raise InvalidPlan(f"{what} must be 1 to {MAX_TEXT} printable characters on one line; shorten or fill it.")


def _kind(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"
