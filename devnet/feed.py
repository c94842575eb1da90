"""What happened, in order, told to those who follow the chain: filters keep it until asked, listeners hear at once.

Nothing is kept for nobody: a filter that is not asked for a while, or has too much unread, is forgotten.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from devnet.clock import Clock
from devnet.codec.blocks import Block
from devnet.codec.keccak import keccak
from devnet.codec.transaction import Transaction

FILTER_SECONDS = 300.0  # geth's filter timeout
MAX_UNREAD = 100_000


@dataclass(frozen=True, slots=True)
class Notice:
    """A block became the head, or ceased to be part of the chain."""

    kind: Literal["block", "orphan"]
    block: Block


@dataclass(frozen=True, slots=True)
class Arrival:
    """A transaction entered the pool as executable, or became so."""

    tx: Transaction


Event: TypeAlias = Notice | Arrival
Listener: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Interest:
    """Which events concern a follower, and what it makes of one."""

    concerns: Callable[[Event], bool]
    news: Callable[[Event], Iterator[object]]


@dataclass(slots=True)
class Filter:
    """An installed filter. `criteria` is what a log filter was asked with; `expires` counts as the clock's `elapsed`."""

    interest: Interest
    criteria: Mapping[str, object] | None
    expires: float
    unread: deque[Event] = field(default_factory=deque)


Unread: TypeAlias = dict[str, tuple[Filter, tuple[Event, ...]]]


class Feed:
    """Tells every event to the filters and the listeners."""

    def __init__(self, clock: Clock, salt: bytes = b"") -> None:
        self._clock = clock
        self._salt = salt  # feeds of several nodes give different ids
        self._filters: dict[str, Filter] = {}
        self._named = 0
        self._early: list[Listener] = []
        self._late: list[Listener] = []

    def append(self, event: Event) -> None:
        """Tell what happened."""
        for listener in (*self._early, *self._late):
            listener(event)
        for known in self._current().values():
            if known.interest.concerns(event):
                known.unread.append(event)
        for name in [name for name, known in self._filters.items() if len(known.unread) > MAX_UNREAD]:
            del self._filters[name]

    def listen(self, listener: Listener, *, early: bool = False) -> Callable[[], None]:
        """Have a function hear every event from now on, the early ones before the others; returns what ends it."""
        listeners = self._early if early else self._late
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def next_name(self) -> str:
        """A new id for a filter or subscription in geth's form: 16 bytes as a quantity, each different, never reused."""
        self._named += 1
        return hex(int.from_bytes(keccak(b"follower" + self._salt + self._named.to_bytes(8, "big"))[:16], "big"))

    def install(self, interest: Interest, criteria: Mapping[str, object] | None = None) -> str:
        """Let a filter follow from now on; returns its id."""
        name = self.next_name()
        self._filters[name] = Filter(interest, criteria, self._clock.elapsed() + FILTER_SECONDS)
        return name

    def uninstall(self, name: str) -> bool:
        """Forget a filter; False for an unknown one."""
        return self._current().pop(name, None) is not None

    def find(self, name: str) -> Filter | None:
        """An installed filter."""
        return self._current().get(name)

    def read(self, name: str) -> list[object] | None:
        """What is new to a filter since it was last read, None for an unknown one."""
        known = self._current().get(name)
        if known is None:
            return None
        known.expires = self._clock.elapsed() + FILTER_SECONDS
        events, known.unread = known.unread, deque()
        return [item for event in events for item in known.interest.news(event)]

    def forget_filters(self) -> None:
        """Forget every filter, as a node does that ends."""
        self._filters.clear()

    def save(self) -> Unread:
        """The filters with what they have not yet read, for a snapshot."""
        return {name: (known, tuple(known.unread)) for name, known in self._current().items()}

    def restore(self, saved: Unread) -> None:
        """Put these filters back as they were, with a new term; younger ones stay."""
        for name, (known, unread) in saved.items():
            known.unread = deque(unread)
            known.expires = self._clock.elapsed() + FILTER_SECONDS
            self._filters[name] = known

    def _current(self) -> dict[str, Filter]:
        """The filters, once those whose term is over are forgotten."""
        if self._filters:
            present = self._clock.elapsed()
            for name in [name for name, known in self._filters.items() if known.expires <= present]:
                del self._filters[name]
        return self._filters
