"""`python -m tests.devnet.differential`: our devnet beside real anvil and real geth, as a report in Markdown."""

import argparse
import json
import sys
from typing import Any

from tests.devnet.differential.comparison import JUDGED, differences, intended, judge, observe, record
from tests.devnet.differential.subjects import missing

Json = Any


def main() -> int:
    """Print the report; 1 where a difference is not intended."""
    parser = argparse.ArgumentParser(prog="tests.devnet.differential", description=__doc__)
    parser.add_argument("--against", choices=("geth", "anvil"), help="one of them only")
    parser.add_argument("--record", action="store_true", help="keep what the peers did, for the tests")
    options = parser.parse_args()
    failed = False
    for ours, theirs in JUDGED:
        if options.against not in (None, theirs):
            continue
        if trouble := missing(theirs):
            print(f"## {ours} beside {theirs}: not run\n\n{trouble}\n")
            continue
        mine, its = observe(ours), observe(theirs)
        if options.record:
            record(its, theirs)
        found = differences(mine.seen, its.seen)
        unmeant, stale = judge(ours, theirs, found)
        counted = f"{len(mine.seen)} observations, {len(found)} differences, {len(unmeant)} not intended"
        print(f"## {ours} beside {its.version}: {counted}\n")
        reasons = intended(ours, theirs)
        for title, paths in (("Not intended", unmeant), ("Intended", [path for path in found if path not in unmeant])):
            print(f"### {title}\n")
            for path in paths:
                here, there = (_short(value) for value in found[path])
                print(f"- **{path}**: {here} — {theirs}: {there}{_reason(path, reasons)}")
            print()
        for pattern in stale:
            print(f"Listed as intended, but not seen: {pattern}\n")
        failed = failed or bool(unmeant or stale)
    return int(failed)


def _short(value: Json) -> str:
    text = json.dumps(value)
    return f"`{text if len(text) <= 300 else text[:300] + ' …'}`"


def _reason(path: str, reasons: dict[str, str]) -> str:
    for pattern, reason in reasons.items():
        if path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1])):
            return f" ({reason})"
    return ""


if __name__ == "__main__":
    sys.exit(main())
