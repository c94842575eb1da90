"""Addresses by their exact spelling; finality; the values."""

import pytest
from eth_utils import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

import chain.errors
from chain.errors import ChainError, InvalidTransaction, RpcError
from chain.finality import is_final
from chain.types import BlockRef, Depth, Head, InvalidAddress, Tag, checksum, to_address

EIP_55 = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


@given(st.binary(min_size=20, max_size=20))
def test_checksum_equals_eth_utils_and_reads_back(address: bytes) -> None:
    assert checksum(address) == to_checksum_address(address)
    assert to_address(checksum(address)) == address


@pytest.mark.parametrize("text", [EIP_55.lower(), "0x" + EIP_55[2:].upper(), EIP_55.replace("aA", "Aa")])
def test_another_spelling_is_refused_with_the_right_one(text: str) -> None:
    with pytest.raises(InvalidAddress, match=EIP_55):
        to_address(text)


@pytest.mark.parametrize(
    "text", ["", "0x", EIP_55[2:], EIP_55[:-1], EIP_55 + "0", "vitalik.eth", "0x" + "g" * 40, EIP_55 + "\n"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidAddress, match="40 hexadecimal digits"):
        to_address(text)


def test_a_wrong_length_has_no_checksum() -> None:
    with pytest.raises(InvalidAddress, match="19"):
        checksum(bytes(19))


@pytest.mark.parametrize(
    ("block", "final", "expected"), [(5, 5, True), (4, 5, True), (6, 5, False), (0, 0, True), (0, None, False)]
)
def test_final_is_at_or_below_the_final_block(block: int, final: int | None, expected: bool) -> None:
    assert is_final(block, None if final is None else BlockRef(final, b"")) is expected


def test_rules_are_checked() -> None:
    for bad in (-1, True, 1.5):
        with pytest.raises(ValueError, match="depth"):
            Depth(bad)
    with pytest.raises(ValueError, match="tags"):
        Tag("latest")


def test_a_head_is_a_reference_too() -> None:
    assert Head(3, b"h", b"p", 0, 0, 0).ref == BlockRef(3, b"h")


def test_the_error_tree_is_as_drawn() -> None:
    drawn = {line.split()[1] for line in chain.errors.__doc__.splitlines() if "──" in line}
    defined = {
        name for name, kind in vars(chain.errors).items() if isinstance(kind, type) and issubclass(kind, ChainError)
    }
    assert drawn == defined - {"ChainError"}
    assert issubclass(InvalidTransaction, ValueError)
    assert "boom" in str(RpcError(3, "boom"))
