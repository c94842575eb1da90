"""The catalogue of faults: what each kind does, where it strikes and which arguments it takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from devnet.errors import INTERNAL_ERROR, SERVER_ERROR, InvalidParams
from devnet.faults.call import Call
from devnet.faults.fields import Json, an_object, count, flag, integer, listed, number, one_of, positive, text
from devnet.txpool.profiles import PROFILES

# `request` kinds strike the whole HTTP body or WebSocket message a call came in, `call` kinds its own answer only.
Stage = Literal["request", "call"]
SUBMISSIONS = frozenset(
    {"eth_sendRawTransaction", "eth_sendTransaction", "eth_sendRawTransactionSync", "eth_sendTransactionSync"}
)
MAX_DELAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Arg:
    """Arguments of a fault; each kind takes some of them. `executed`: the calls run although the answer goes astray."""

    ms: float = 0
    executed: bool = False
    status: int = 503
    retry_after: float | None = None
    body: str | None = None
    bytes: int | None = None
    times: int = 2
    blocks: int = 1
    id: object = None
    code: int = INTERNAL_ERROR
    message: str = "internal error"
    data: str | None = None
    name: str | None = None


def _status(value: object, name: str) -> int:
    found = integer(value, name)
    if not 200 <= found <= 599:
        raise InvalidParams(f"{name} must be an HTTP status from 200 to 599")
    return found


def _milliseconds(value: object, name: str) -> float:
    found = number(value, name)
    if found > MAX_DELAY_MS:
        raise InvalidParams(f"{name} must be at most {MAX_DELAY_MS} milliseconds, which is a day")
    return found


def _catalogued(value: object, name: str) -> str:
    """A client's refusal by name, as `besu.nonce_too_low`."""
    client, _, reason = text(value, name).partition(".")
    one_of(client, "the client of an error", PROFILES)
    one_of(reason, f"the error of {client}", PROFILES[client].texts)
    return f"{client}.{reason}"


def _anything(value: object, _name: str) -> object:
    return value


# JSON name: field of Arg, reader
_ARGUMENTS: Mapping[str, tuple[str, Callable[[object, str], object]]] = {
    "ms": ("ms", _milliseconds),
    "executed": ("executed", flag),
    "status": ("status", _status),
    "retryAfter": ("retry_after", number),
    "body": ("body", text),
    "bytes": ("bytes", count),
    "times": ("times", positive),
    "blocks": ("blocks", positive),
    "id": ("id", _anything),
    "code": ("code", integer),
    "message": ("message", text),
    "data": ("data", text),
    "name": ("name", _catalogued),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault. `arguments` are JSON names; a bare value in place of the object is the first of them."""

    does: str
    stage: Stage
    arguments: tuple[str, ...] = ()
    default: Arg = field(default_factory=Arg)
    required: bool = False
    applies: Callable[[Call], bool] = lambda _call: True

    def parse(self, name: str, value: object) -> Arg:
        """Read `arg`. Raises InvalidParams naming what is allowed."""
        if value is None:
            if self.required:
                raise InvalidParams(f"{name} needs arg: {listed(self.arguments)}")
            return self.default
        if not isinstance(value, dict):
            value = self._spelled_out(name, value)
        fields: Json = an_object(value, f"arg of {name}", self.arguments)
        read: dict[str, Any] = {}
        for key, given in fields.items():
            into, reader = _ARGUMENTS[key]
            read[into] = reader(given, key)
        return replace(self.default, **read)

    def _spelled_out(self, name: str, value: object) -> dict[str, object]:
        if not self.arguments:
            raise InvalidParams(f"{name} takes no arg")
        first = "name" if isinstance(value, str) and "name" in self.arguments else self.arguments[0]
        return {first: value}


def _is_submission(call: Call) -> bool:
    return call.method in SUBMISSIONS


def _is_raw_submission(call: Call) -> bool:
    return call.method == "eth_sendRawTransaction"


def _is_in_batch(call: Call) -> bool:
    return call.in_batch


_ERROR = ("code", "message", "data", "name")

KINDS: Mapping[str, Kind] = {
    "drop_before": Kind("the connection breaks, nothing was executed", "request"),
    "drop_after": Kind(
        "everything was executed, the connection breaks before the answer", "request", (), Arg(executed=True)
    ),
    "delay": Kind(
        "the answer takes longer; executed: true executes first, then waits",
        "request",
        ("ms", "executed"),
        required=True,
    ),
    "hang": Kind("no answer ever, the connection stays open", "request", ("executed",)),
    "reset_mid_body": Kind("the connection is reset within the answer", "request", ("bytes",), Arg(executed=True)),
    "http": Kind("an HTTP status in place of the answer", "request", ("status", "retryAfter", "body", "executed")),
    "html": Kind("a page of HTML in place of the answer", "request", ("status", "body", "executed"), Arg(status=200)),
    "truncate_json": Kind("the answer ends too early, in good HTTP order", "request", ("bytes",), Arg(executed=True)),
    "empty_body": Kind("status 200 and nothing else", "request", ("executed",), Arg(executed=True)),
    "reorder_batch": Kind(
        "the answers of a batch in another order", "request", (), Arg(executed=True), applies=_is_in_batch
    ),
    "partial_batch": Kind("a batch's answer lacks this call's", "call", applies=_is_in_batch),
    "wrong_id": Kind("the answer bears another id", "call", ("id",)),
    "duplicate": Kind("the call is executed several times, the first answer counts", "call", ("times",)),
    "error": Kind("an error in place of the answer, nothing was executed", "call", _ERROR, required=True),
    "null_result": Kind("the call is executed, its result is null", "call"),
    "stale": Kind(
        "answered as by a node some blocks behind", "call", ("blocks",), applies=lambda call: not _is_submission(call)
    ),
    "lie_accept": Kind("the hash is returned, the transaction forgotten", "call", applies=_is_raw_submission),
    "accept_as_error": Kind(
        "the transaction is taken in, an error returned", "call", _ERROR, Arg(code=SERVER_ERROR), applies=_is_submission
    ),
}
