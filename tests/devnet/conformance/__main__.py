"""`python -m tests.devnet.conformance DIR [PATTERN]`: run the whole suite in DIR, those not in scope too, and count by method.

With a PATTERN (of fnmatch, over `method/file.io`) only what fits is shown, with the first differences.
"""

import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

from tests.devnet.conformance.suite import cases, in_scope, start_on_suite

SHOWN = 8


def main(folder: Path, pattern: str | None) -> None:
    """Print the counts, or the differences of what fits the pattern."""
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    with start_on_suite(folder) as node:
        for case in cases(folder):
            found = case.run(node)
            total[case.folder] += 1
            passed[case.folder] += not found
            more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
            if pattern and fnmatch(case.name, pattern):
                sys.stdout.write(
                    "\n  ".join([f"{case.name}: {'differs' if found else 'passes'}", *found[:SHOWN], *more]) + "\n"
                )
    if pattern:
        return
    for scope, title in ((True, "in scope"), (False, "not in scope")):
        folders = [name for name in total if in_scope(name) is scope]
        sys.stdout.write(f"{title}: {sum(passed[n] for n in folders)} of {sum(total[n] for n in folders)} pass\n")
        for name in folders:
            sys.stdout.write(f"  {passed[name]:3} of {total[name]:3}  {name}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
