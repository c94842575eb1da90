"""The suite's files: a chain with its genesis, and `.io` files of requests (`>>`) and the answers they must get (`<<`)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.devnet.conformance.comparison import differences
from tests.support.devnet import Devnet, NodeProcess, start_devnet

# A folder a method. These are run by `python -m tests.devnet.conformance` only: what they ask for is no part of the devnet.
OUT_OF_SCOPE = frozenset({"testing_buildBlockV1"})
KNOWN = Path(__file__).with_name("known.json")


@dataclass
class Case:
    """One `.io` file. With `shape_only` the values of the answer are the client's own, its form is not."""

    name: str
    shape_only: bool = False
    exchanges: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """The method's name."""
        return self.name.partition("/")[0]

    def run(self, node: NodeProcess) -> list[str]:
        """Ask the node; what of its answers is not as it must be."""
        found = []
        for request, expected in self.exchanges:
            found += differences(expected, node.request(request), shape_only=self.shape_only)
        return found


def parse(name: str, text: str) -> Case:
    """Read a `.io` file."""
    case = Case(name)
    request: dict[str, Any] = {}
    for line in text.splitlines():
        kind, rest = line[:2], line[2:].strip()
        if kind == "//":
            case.shape_only |= rest.startswith("speconly:")
        elif kind == ">>":
            request = json.loads(rest)
        elif kind == "<<":
            case.exchanges.append((request, json.loads(rest)))
        elif line.strip():
            raise ValueError(f"{name}: no line of an .io file: {line[:60]}")
    return case


def names(folder: Path) -> list[str]:
    """All `.io` files of the suite as `method/file.io`, in the order they are to be run in."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*.io"))


def in_scope(name: str) -> bool:
    """Whether the devnet is to pass a case."""
    return name.partition("/")[0] not in OUT_OF_SCOPE


def cases(folder: Path) -> Iterator[Case]:
    """All cases, in the order they are to be run in: later ones see the transactions of eth_sendRawTransaction."""
    for name in names(folder):
        yield parse(name, (folder / name).read_text())


def known() -> dict[str, str]:
    """Cases in scope that do not pass, each with the reason."""
    entries: dict[str, str] = json.loads(KNOWN.read_text())
    return entries


def start_on_suite(folder: Path) -> Devnet:
    """A devnet on the suite's chain. Its forkchoice names the head as safe and finalized too."""
    chain = ("--init", str(folder / "genesis.json"), "--import", str(folder / "chain.rlp"))
    return start_devnet("--no-mining", "--silent", "--slots-in-an-epoch", "0", *chain)
