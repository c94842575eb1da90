"""The bytes of a transaction nobody signed: zeros for v, r and s."""

from dataclasses import replace

from devnet.codec import rlp_coding
from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import Item, integer
from devnet.codec.transaction import ACCESS_LIST, BLOB, LEGACY, SET_CODE, Transaction


def encoded(tx: Transaction) -> Transaction:
    """The transaction with the bytes and the hash its fields give, as geth hashes one without a signature."""
    raw = _encode(tx)
    return replace(tx, raw=raw, hash=keccak(raw))


def _encode(tx: Transaction) -> bytes:
    fields: list[Item] = [integer(tx.nonce)]
    if tx.type in {LEGACY, ACCESS_LIST}:
        fields.append(integer(tx.max_fee))
    else:
        fields += (integer(tx.max_priority_fee), integer(tx.max_fee))
    fields += (integer(tx.gas), tx.to or b"", integer(tx.value), tx.data)
    if tx.type != LEGACY:
        fields.insert(0, integer(tx.chain_id or 0))
        fields.append(tx.access_list)
    if tx.type == BLOB:
        fields += (integer(tx.max_fee_per_blob_gas), tx.blob_hashes)
    if tx.type == SET_CODE:
        fields.append(
            [
                [integer(item.chain_id), item.address, *map(integer, (item.nonce, item.y_parity, item.r, item.s))]
                for item in tx.authorizations
            ]
        )
    body = rlp_coding.encode([*fields, b"", b"", b""])
    return body if tx.type == LEGACY else bytes((tx.type,)) + body
