"""The demo tells its story to the end, and leaves nothing behind however it ends."""

import re
import signal
import time

import pytest

from tests.demo.conftest import Demo

pytestmark = [pytest.mark.process, pytest.mark.timeout(240), pytest.mark.xdist_group("demo")]


def test_plays_to_the_end_and_keeps_every_promise(demo: Demo) -> None:
    began = time.monotonic()
    assert demo.wait(180) == 0, demo.output()
    assert time.monotonic() - began < 120
    told = " ".join(demo.output().split())
    audited = re.search(r"audit: (\d+) executions, (\d+) transactions, each mined exactly once, no hole", told)
    assert audited is not None, told
    assert audited[1] == audited[2]
    assert "0 violations" in told
    assert "fence_current" in told
    assert "worker-1 was killed (SIGKILL)" in told
    rows = [line.split() for line in demo.output().splitlines() if re.match(r"\d\d:\d\d:\d\d  ?\w", line)]
    workers = {tuple(row[-3:]) for row in rows}
    assert ("worker-1", "worker-1", "worker-2") in workers, demo.output()
    assert ("worker-2", "worker-3", "worker-3") in workers, demo.output()
    nonces = [int(row[2]) for row in rows]
    assert nonces == list(range(len(nonces)))
    assert {row[5] for row in rows} == {"SUCCEEDED"}
    assert demo.left_processes() == []
    assert demo.left_files() == []


@pytest.mark.parametrize("words", ["are starting in", "worker-1 holds the wallet's lease"])
def test_ctrl_c_ends_it_at_once_and_leaves_nothing(demo: Demo, words: str) -> None:
    demo.wait_for(words)
    began = time.monotonic()
    demo.process.send_signal(signal.SIGINT)
    assert demo.wait(30) == 130, demo.output()
    assert time.monotonic() - began < 15
    assert "Traceback" not in demo.output()
    assert demo.left_processes() == []
    assert demo.left_files() == []


def test_kill_9_of_the_demo_ends_every_process_of_it(demo: Demo) -> None:
    demo.wait_for("worker-1 holds the wallet's lease")
    assert len(demo.left_processes()) >= 4
    demo.process.kill()
    demo.wait(5)
    deadline = time.monotonic() + 15
    while demo.left_processes() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert demo.left_processes() == []
