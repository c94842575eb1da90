"""Our devnet beside what real geth and real anvil were seen to do on the same bytes, and beside the live ones on demand.

`make differential` runs the peers themselves and prints the report; `--record` renews the recordings.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.devnet.differential.comparison import HERE, JUDGED, differences, judge, observe, recorded
from tests.devnet.differential.stories import transactions
from tests.devnet.differential.subjects import GENESIS
from tests.support.devnet import ROOT, start_devnet


@pytest.mark.parametrize(("ours", "theirs"), JUDGED, ids=[theirs for _, theirs in JUDGED])
def test_every_difference_from_a_recorded_peer_is_listed_with_its_reason(ours: str, theirs: str) -> None:
    peer = recorded(theirs)
    found = differences(observe(ours).seen, peer.seen)
    unmeant, stale = judge(ours, theirs, found)
    assert {path: found[path] for path in unmeant} == {}
    assert stale == [], "listed as intended, but not seen any more"


def test_blocks_made_by_geth_import_with_every_root_and_hash_equal() -> None:
    blocks = HERE / "recorded_geth.rlp"
    with start_devnet("--init", str(GENESIS), "--import", str(blocks), "--no-mining") as node:
        assert int(node.rpc("eth_blockNumber"), 16) == sum(1 for _ in transactions())
        last = node.rpc("eth_getBlockByNumber", "latest", False)
        raw = bytes.fromhex(node.rpc("debug_getRawBlock", "latest")[2:])
        assert blocks.read_bytes().endswith(raw)
        assert last["transactions"] == [list(transactions())[-1][1].hash]


def test_a_block_of_geth_with_one_bit_changed_is_refused_by_number_and_field(tmp_path: Path) -> None:
    blocks = bytearray((HERE / "recorded_geth.rlp").read_bytes())
    blocks[100] ^= 1  # within the first block's state root
    broken = tmp_path / "broken.rlp"
    broken.write_bytes(blocks)
    flags = ["--init", str(GENESIS), "--import", str(broken), "--port", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "devnet", *flags], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "block 1" in done.stderr
    assert "stateRoot" in done.stderr
