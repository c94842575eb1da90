"""Crash points as armed from the environment: which fires, how often, and what each action does to the process."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from executor import crashpoints
from executor.crashpoints import CrashPoint
from executor.errors import ConfigError
from tests.support.devnet import ROOT
from tests.support.worker_process import wait_for

_PROGRAM = """
import os, signal, sys
from executor.crashpoints import CrashPoint, hook_from
signal.signal(signal.SIGTERM, lambda *_: print("asked to end", flush=True))
crash = hook_from(dict(os.environ))
for point in (CrashPoint.SIGN_MADE, CrashPoint.SIGN_STORED, CrashPoint.SIGN_STORED):
    crash(point)
    print("passed", point, flush=True)
"""


def start(action: str, marker: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"FENCED_CRASH": f"sign.stored:{action}:{marker}"}
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )


def output(process: subprocess.Popen[str]) -> list[str]:
    return process.communicate(timeout=30)[0].splitlines()


def test_nothing_is_armed_without_the_variable() -> None:
    assert crashpoints.hook_from({}) is crashpoints.inert
    assert crashpoints.hook_from({"FENCED_CRASH": ""}) is crashpoints.inert


@pytest.mark.parametrize("wish", ["x", "sign.stored:kill", "sign.stored:explode:/m", "sign.sealed:kill:/m", "::"])
def test_a_wish_that_names_no_point_or_action_is_refused_in_one_sentence(wish: str) -> None:
    with pytest.raises(ConfigError) as caught:
        crashpoints.hook_from({"FENCED_CRASH": wish})
    assert str(caught.value) == "FENCED_CRASH is point:kill|stop|exit|cut:marker-file, for tests only: unset it."


def test_kill_ends_the_process_at_the_point_and_names_it_in_the_marker(tmp_path: Path) -> None:
    process = start("kill", tmp_path / "marker")
    assert output(process) == ["passed sign.made"]
    assert process.returncode == -signal.SIGKILL
    assert (tmp_path / "marker").read_text() == f"{process.pid}\n"


def test_a_point_fires_once_while_its_marker_is_there(tmp_path: Path) -> None:
    (tmp_path / "marker").touch()
    process = start("kill", tmp_path / "marker")
    assert output(process) == ["passed sign.made", "passed sign.stored", "passed sign.stored"]
    assert process.returncode == 0


def test_exit_asks_the_process_to_end_and_goes_on(tmp_path: Path) -> None:
    process = start("exit", tmp_path / "marker")
    assert output(process) == ["passed sign.made", "asked to end", "passed sign.stored", "passed sign.stored"]


def test_stop_freezes_the_process_at_the_point(tmp_path: Path) -> None:
    process = start("stop", tmp_path / "marker")
    wait_for(lambda: os.waitpid(process.pid, os.WUNTRACED | os.WNOHANG)[1], 30, "the process stands still")
    assert process.stdout is not None
    assert process.stdout.readline() == "passed sign.made\n"
    process.send_signal(signal.SIGCONT)
    assert output(process) == ["passed sign.stored", "passed sign.stored"]


def test_cut_waits_at_the_point_until_it_may_go(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    crash = crashpoints.hook_from({"FENCED_CRASH": f"sign.stored:cut:{marker}"})
    thread = threading.Thread(target=crash, args=(CrashPoint.SIGN_STORED,))
    thread.start()
    wait_for(marker.exists, 30, "the point is reached")
    thread.join(0.05)
    assert thread.is_alive()
    (tmp_path / "marker.go").touch()
    thread.join(30)
    assert not thread.is_alive()
    crash(CrashPoint.SIGN_STORED)
