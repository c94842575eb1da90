"""What a schema may hold beside the first release's. Statements name it {acknowledged}, {resolved} and {stopped}."""

from collections.abc import Mapping
from typing import Any

LOOK = """
SELECT to_regclass('acknowledged_nonce') IS NOT NULL AS acknowledged,
       EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'execution'::regclass AND attname = 'resolution') AS resolved,
       EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'execution'::regclass AND attname = 'stopped_at') AS stopped
"""
_NONE = "(SELECT 0 AS account_id, 0::bigint AS nonce, ''::text AS execution_id, 0 AS step WHERE false)"


def names(found: Mapping[str, Any]) -> dict[str, str]:
    """What to write for each name: a relation of nonces acknowledged as used elsewhere, and two conditions on the execution `e`.

    An execution is resolved where an operator's word about it is recorded, stopped where a rewind keeps it from further nonces.
    """
    return {
        "{acknowledged}": "acknowledged_nonce" if found["acknowledged"] else _NONE,
        "{resolved}": "e.resolution IS NOT NULL" if found["resolved"] else "false",
        "{stopped}": "e.stopped_at IS NOT NULL" if found["stopped"] else "false",
    }
