"""What two subjects saw, side by side; and which differences are intended."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.devnet.differential.stories import tell_execution, tell_pool, transactions
from tests.devnet.differential.subjects import pair

Json = Any
HERE = Path(__file__).parent
INTENDED = HERE / "intended.json"
JUDGED = (("devnet", "geth"), ("devnet --profile anvil", "anvil"))


@dataclass(frozen=True, slots=True)
class Observation:
    """Who was observed, what was seen by label, and the blocks of the execution story as RLP, one after the other."""

    version: str
    seen: dict[str, Json]
    blocks: bytes


def observe(name: str) -> Observation:
    """Put a subject through both stories; again where geth made an empty block of its own among ours."""
    while (observed := _observe(name)) is None:
        pass
    return observed


def _observe(name: str) -> Observation | None:
    with pair(name) as start:
        subject = start("execution")
        version: str = subject.node.rpc("web3_clientVersion")
        tell_execution(subject)
        head = int(subject.node.rpc("eth_blockNumber"), 16)
        if head != sum(1 for _ in transactions()):
            return None
        # anvil knows no raw blocks.
        numbers = range(1, head + 1) if name != "anvil" else ()
        blocks = b"".join(bytes.fromhex(subject.node.rpc("debug_getRawBlock", hex(at))[2:]) for at in numbers)
        tell_pool(start("pool"))
        return Observation(version, subject.seen, blocks)


def record(observed: Observation, name: str) -> None:
    """Keep what a peer was seen to do, so that it need not be there to compare with."""
    lines = [f"{json.dumps(label)}: {json.dumps(value)}" for label, value in observed.seen.items()]
    text = ",\n".join([f'"version": {json.dumps(observed.version)}', *lines])
    (HERE / f"recorded_{name}.json").write_text("{\n" + text + "\n}\n")
    if observed.blocks:
        (HERE / f"recorded_{name}.rlp").write_bytes(observed.blocks)


def recorded(name: str) -> Observation:
    """What a peer was seen to do when it was last recorded."""
    seen = json.loads((HERE / f"recorded_{name}.json").read_text())
    blocks = HERE / f"recorded_{name}.rlp"
    return Observation(seen.pop("version"), seen, blocks.read_bytes() if blocks.exists() else b"")


def differences(ours: dict[str, Json], theirs: dict[str, Json]) -> dict[str, tuple[Json, Json]]:
    """By label and path, what we saw and what they did. Lists of field names are compared as sets, words as they are."""
    found: dict[str, tuple[Json, Json]] = {}
    for label in ours | theirs:
        _descend(label, ours.get(label, "nothing seen"), theirs.get(label, "nothing seen"), found)
    return found


def _descend(path: str, ours: Json, theirs: Json, found: dict[str, tuple[Json, Json]]) -> None:
    if path.startswith("fields of"):
        if missing := sorted(set(theirs or ()) - set(ours or ())):
            found[f"{path}: missing here"] = ([], missing)
        if more := sorted(set(ours or ()) - set(theirs or ())):
            found[f"{path}: only here"] = (more, [])
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours | theirs:
            _descend(f"{path} > {name}", ours.get(name), theirs.get(name), found)
    elif ours != theirs:
        found[path] = (ours, theirs)


def intended(ours: str, theirs: str) -> dict[str, str]:
    """The differences we mean to have, with their reasons, by label and path; a label may end in `*`."""
    listed: dict[str, dict[str, str]] = json.loads(INTENDED.read_text())
    return listed.get(f"{ours} / {theirs}", {})


def judge(ours: str, theirs: str, found: dict[str, tuple[Json, Json]]) -> tuple[list[str], list[str]]:
    """Differences that nobody intended, and intentions that nothing shows any more."""
    listed = intended(ours, theirs)
    used: set[str] = set()

    def meant(path: str) -> bool:
        for pattern in listed:
            if path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1])):
                used.add(pattern)
                return True
        return False

    unmeant = [path for path in found if not meant(path)]
    return unmeant, [pattern for pattern in listed if pattern not in used]
