"""What the planner asks of a plan's process, and what it gets back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from executor.strategy_values import PlanOutcome


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """One plan to make.

    `plan` is "module.path:function"; `slot` an aware UTC instant or None; `account` a checksummed address;
    `block_hash` 0x and 64 hex digits; `allow_create` is the account's policy. `params` and `input` are JSON values.
    """

    execution_id: str
    slot: datetime | None
    strategy: str
    plan: str
    params: Mapping[str, Any]
    input: Any
    account: str
    chain_id: int
    block_number: int
    block_hash: str
    endpoint_url: str = field(repr=False)
    allow_create: bool = False

    def message(self) -> dict[str, Any]:
        """The request as the child reads it."""
        return {
            "execution_id": self.execution_id,
            "slot": None if self.slot is None else self.slot.astimezone(UTC).isoformat(),
            "strategy": self.strategy,
            "params": dict(self.params),
            "input": self.input,
            "account": self.account,
            "chain_id": self.chain_id,
            "block_number": self.block_number,
            "block_hash": self.block_hash,
            "endpoint_url": self.endpoint_url,
        }


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What one request came to, how many seconds it took, and what was printed meanwhile (the last 16 KiB)."""

    execution_id: str
    outcome: PlanOutcome
    seconds: float
    output: str
