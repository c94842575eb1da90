"""Whether an answer is the expected one: to the last value, or in its form only."""

from typing import Any


def differences(expected: dict[str, Any], got: dict[str, Any] | None, *, shape_only: bool = False) -> list[str]:
    """How a JSON-RPC answer differs from the expected one. The text of an error is the client's own, its code is not."""
    if got is None:
        return ["no answer"]
    if "error" in expected and "error" in got:
        expected = expected | {"error": expected["error"] | {"message": ""}}
        got = got | {"error": got["error"] | {"message": ""}}
    return list(_shapes("", expected, got) if shape_only else _values("", expected, got))


def _values(path: str, want: Any, have: Any) -> list[str]:
    if isinstance(want, dict) and isinstance(have, dict):
        found = _names(path, want, have)
        return found + [
            text for key in want.keys() & have.keys() for text in _values(f"{path}.{key}", want[key], have[key])
        ]
    if isinstance(want, list) and isinstance(have, list):
        if len(want) != len(have):
            return [f"{path}: {len(have)} entries, want {len(want)}"]
        pairs = enumerate(zip(want, have, strict=True))
        return [text for at, (one, other) in pairs for text in _values(f"{path}[{at}]", one, other)]
    if type(want) is not type(have) or want != have:
        return [f"{path}: {_short(have)}, want {_short(want)}"]
    return []


def _shapes(path: str, want: Any, have: Any) -> list[str]:
    """As `_values` for a form: names must agree unless they are data themselves, as the addresses in a pool are."""
    if isinstance(want, dict) and isinstance(have, dict):
        if _is_map(want) and _is_map(have):
            samples = list(want.values())
            entries = enumerate(have.items())
            return [
                text for at, (key, item) in entries if samples for text in _entry(f"{path}.{key}", samples, at, item)
            ]
        found = _names(path, want, have)
        return found + [
            text for key in want.keys() & have.keys() for text in _shapes(f"{path}.{key}", want[key], have[key])
        ]
    if isinstance(want, list) and isinstance(have, list):
        return [text for at, item in enumerate(have) if want for text in _entry(f"{path}[{at}]", want, at, item)]
    if _kind(want) != _kind(have):
        return [f"{path}: {_short(have)}, want something like {_short(want)}"]
    return []


def _entry(path: str, want: list[Any], at: int, item: Any) -> list[str]:
    """An entry of a list or map must have the form of one there: of that at its place before all."""
    found = _shapes(path, want[min(at, len(want) - 1)], item)
    return found if found and all(_shapes(path, other, item) for other in want) else []


def _names(path: str, want: dict[str, Any], have: dict[str, Any]) -> list[str]:
    found = [f"{path}.{key}: missing" for key in want if key not in have]
    return found + [f"{path}.{key}: not expected" for key in have if key not in want]


def _is_map(value: dict[str, Any]) -> bool:
    """Keys are addresses, nonces, slots: nothing of the form."""
    return all(key.startswith("0x") or key.isdecimal() for key in value)


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "hex" if value.startswith("0x") else "text"
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, int | float) else type(value).__name__


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:60]}…{text[-16:]}"
