"""A Merkle-Patricia trie that hashes again only what changed (yellow paper, appendix D).

Keys must be free of prefixes of one another, as hashed state keys and RLP indexes are: no branch carries a value.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import encode, integer, wrap

EMPTY_ROOT = keccak(b"\x80")
_NIBBLES = {digit: at for at, digit in enumerate("0123456789abcdef")}


@dataclass(slots=True)
class _Leaf:
    path: str
    value: bytes
    ref: bytes | None = None


@dataclass(slots=True)
class _Extension:
    path: str
    child: "_Branch"
    ref: bytes | None = None


@dataclass(slots=True)
class _Branch:
    """`refs` are the children as the branch's encoding holds them, out of date for those that `changed` since."""

    children: "dict[str, _Node]"
    refs: list[bytes] = field(default_factory=lambda: [b"\x80"] * 16)
    changed: set[str] = field(default_factory=set)
    ref: bytes | None = None


_Node: TypeAlias = _Leaf | _Extension | _Branch


class Trie:
    """A mutable trie from bytes to bytes; `root()` is cheap after few changes."""

    def __init__(self, items: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._root: _Node | None = None
        for key, value in items:
            self.put(key, value)

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value; the empty value removes the key."""
        path = key.hex()
        if value:
            self._root = _put(self._root, path, value)
        elif self._root is not None:
            self._root = _remove(self._root, path)

    def root(self) -> bytes:
        """The 32-byte root hash."""
        return EMPTY_ROOT if self._root is None else keccak(_encode(self._root))

    def proof(self, key: bytes) -> list[bytes]:
        """The nodes from the root towards a key, as far as the trie goes there: what eth_getProof gives (EIP-1186).

        They prove the value or, where the key is not in the trie, its absence. Nodes held within others are left out.
        """
        nodes: list[bytes] = []
        node, path = self._root, key.hex()
        while node is not None:
            body = _encode(node)
            if not nodes or len(body) >= 32:
                nodes.append(body)
            if isinstance(node, _Branch):
                node, path = node.children.get(path[0]), path[1:]
            elif isinstance(node, _Extension) and path.startswith(node.path):
                path = path[len(node.path) :]
                node = node.child
            else:
                break
        return nodes


def ordered_root(values: Iterable[bytes]) -> bytes:
    """The root of a list, keyed by RLP of the index: a block's transactions or receipts."""
    listed = list(values)
    if len(listed) == 1:  # one leaf, whose path is the RLP of 0: what a block with each submission has
        return keccak(wrap(b"\x82\x20\x80" + encode(listed[0])))
    return Trie((encode(integer(i)), value) for i, value in enumerate(listed)).root()


def _common(one: str, other: str) -> int:
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return min(len(one), len(other))


def _put(node: _Node | None, path: str, value: bytes) -> _Node:
    if node is None:
        return _Leaf(path, value)
    if isinstance(node, _Branch):
        nibble = path[0]
        node.ref = None
        node.changed.add(nibble)
        node.children[nibble] = _put(node.children.get(nibble), path[1:], value)
        return node
    if isinstance(node, _Leaf) and node.path == path:
        node.value, node.ref = value, None
        return node
    shared = _common(node.path, path)
    if isinstance(node, _Extension) and shared == len(node.path):
        node.ref = None
        _put(node.child, path[shared:], value)
        return node
    children = {node.path[shared]: _shorten(node, shared + 1), path[shared]: _Leaf(path[shared + 1 :], value)}
    branch = _Branch(children, changed=set(children))
    return _Extension(path[:shared], branch) if shared else branch


def _shorten(node: _Leaf | _Extension, cut: int) -> _Node:
    if isinstance(node, _Leaf):
        return _Leaf(node.path[cut:], node.value)
    return _Extension(node.path[cut:], node.child) if len(node.path) > cut else node.child


def _remove(node: _Node, path: str) -> _Node | None:
    if isinstance(node, _Leaf):
        return None if node.path == path else node
    if isinstance(node, _Extension):
        if not path.startswith(node.path):
            return node
        child = _remove(node.child, path[len(node.path) :])
        assert child is not None, "a branch has two children at least"
        return _join(node.path, child)
    child = node.children.get(path[0])
    if child is None:
        return node
    left = _remove(child, path[1:])
    node.ref = None
    node.changed.add(path[0])
    if left is not None:
        node.children[path[0]] = left
        return node
    del node.children[path[0]]
    if len(node.children) > 1:
        return node
    [(nibble, last)] = node.children.items()
    return _join(nibble, last)


def _join(path: str, child: _Node) -> _Node:
    if isinstance(child, _Leaf):
        return _Leaf(path + child.path, child.value)
    if isinstance(child, _Extension):
        return _Extension(path + child.path, child.child)
    return _Extension(path, child)


def _encode(node: _Node) -> bytes:
    if isinstance(node, _Leaf):
        return wrap(encode(_compact(node.path, "2", "3")) + encode(node.value))
    if isinstance(node, _Extension):
        return wrap(encode(_compact(node.path, "0", "1")) + _reference(node.child))
    refs = node.refs
    for nibble in node.changed:
        child = node.children.get(nibble)
        refs[_NIBBLES[nibble]] = b"\x80" if child is None else _reference(child)
    node.changed.clear()
    return wrap(b"".join(refs) + b"\x80")


def _reference(node: _Node) -> bytes:
    if node.ref is None:
        body = _encode(node)
        node.ref = body if len(body) < 32 else b"\xa0" + keccak(body)
    return node.ref


def _compact(path: str, even: str, odd: str) -> bytes:
    return bytes.fromhex(odd + path if len(path) % 2 else even + "0" + path)
