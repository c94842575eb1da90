"""Everything this judge can find: the checks in the order they run, and every kind of violation."""

from executor.audit import (
    generations,
    journal,
    lives,
    offers,
    onchain,
    outcomes,
    payments,
    signatures,
    slots,
    stops,
    walks,
)
from executor.audit.reading import Check
from executor.audit.report import Kind

WHOLE: tuple[tuple[Check, ...], ...] = (slots.WHOLE, payments.WHOLE, offers.WHOLE, stops.WHOLE)
EXECUTIONS: tuple[Check, ...] = (*slots.EXECUTIONS, *payments.EXECUTIONS, *lives.EXECUTIONS)
ACCOUNT: tuple[Check, ...] = (*payments.ACCOUNT, *generations.ACCOUNT)
NONCES: tuple[Check, ...] = (*payments.NONCES, *offers.NONCES, *outcomes.NONCES)

CHECKS: tuple[Check, ...] = (
    *(check for checks in WHOLE for check in checks),
    *EXECUTIONS,
    *ACCOUNT,
    *NONCES,
    *journal.ACCOUNT,
    *journal.NONCES,
)
KINDS: tuple[Kind, ...] = (
    *(kind for check in CHECKS for kind in check.kinds),
    *walks.KINDS,
    *generations.KINDS,
    *signatures.KINDS,
    *onchain.KINDS,
)
