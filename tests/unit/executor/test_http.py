"""The worker's HTTP face: what it answers when fine, when not, and to strangers' paths."""

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from executor.errors import ConfigError
from executor.http import Face


@pytest.fixture
def health() -> dict[str, bool]:
    return {"live": True, "ready": True}


@pytest.fixture
def face(health: dict[str, bool]) -> Iterator[Face]:
    face = Face("127.0.0.1:0", lambda: health["live"], lambda: health["ready"])
    yield face
    face.close()


def get(face: Face, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{face.address}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_live_and_ready_tell_how_the_worker_is(face: Face, health: dict[str, bool]) -> None:
    assert get(face, "/live") == (200, "ok\n")
    health["ready"] = False
    assert get(face, "/ready") == (503, "not ok\n")
    assert get(face, "/live") == (200, "ok\n")
    health["live"] = False
    assert get(face, "/live") == (503, "not ok\n")


def test_metrics_are_what_prometheus_reads(face: Face) -> None:
    status, text = get(face, "/metrics")
    assert status == 200
    assert "# TYPE fenced_stale_writes_refused_total counter" in text
    assert "# TYPE fenced_tick_seconds histogram" in text


def test_other_paths_are_not_found(face: Face) -> None:
    assert get(face, "/secrets")[0] == 404


def test_a_taken_port_is_one_sentence(face: Face) -> None:
    with pytest.raises(ConfigError, match=r"listen: .* cannot be bound \(Address already in use\)"):
        Face(face.address, bool, bool)
