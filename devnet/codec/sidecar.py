"""Blobs on their way to the chain: what travels beside a type 3 transaction and is no part of it (EIP-4844, EIP-7594).

KZG arithmetic is ckzg's, loaded with its trusted setup when the first blob comes (about three seconds).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from devnet.codec.fields import FieldError, checked_count, fixed, sequence, uint8
from devnet.codec.rlp_coding import Item, integer
from devnet.errors import DecodeError, Rejected

BLOB_BYTES: Final = 131_072
CELLS_PER_BLOB: Final = 128
PROOFS_OF_BLOBS: Final = 0
PROOFS_OF_CELLS: Final = 1
VERSIONED_HASH_KZG: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Blobs with a commitment each, and proofs: one for each blob (version 0), or for each of its 128 cells (version 1)."""

    version: int
    blobs: tuple[bytes, ...]
    commitments: tuple[bytes, ...]
    proofs: tuple[bytes, ...]

    @property
    def versioned_hashes(self) -> tuple[bytes, ...]:
        """What the transaction must name: a hash of each commitment."""
        return tuple(versioned_hash(commitment) for commitment in self.commitments)

    def items(self) -> list[Item]:
        """The RLP items that follow the transaction in its network form."""
        version: list[Item] = [integer(self.version)] if self.version else []
        return [*version, self.blobs, self.commitments, self.proofs]


def versioned_hash(commitment: bytes) -> bytes:
    """The hash by which a commitment is named on chain."""
    return VERSIONED_HASH_KZG + sha256(commitment).digest()[1:]


def decode_sidecar(items: Sequence[Item]) -> Sidecar:
    """Read what follows the transaction in its network form. Raises DecodeError."""
    versioned = bool(items) and isinstance(items[0], bytes)
    struct = f"blobTxWithBlobsV{int(versioned)}"
    parts = checked_count(items, struct, 3 + versioned)[-3:]

    def read(at: int, name: str, size: int, kind: str) -> tuple[bytes, ...]:
        entries = sequence(parts[at], name, f"[]{kind}")
        return tuple(fixed(entry, size, f"{name}[{index}]", kind) for index, entry in enumerate(entries))

    try:
        version = uint8(items[0], "Version") if versioned else PROOFS_OF_BLOBS
        sidecar = Sidecar(
            version=version,
            blobs=read(0, "Blobs", BLOB_BYTES, "kzg4844.Blob"),
            commitments=read(1, "Commitments", 48, "kzg4844.Commitment"),
            proofs=read(2, "Proofs", 48, "kzg4844.Proof"),
        )
    except FieldError as problem:
        raise problem.inside(struct) from None
    if versioned and version != PROOFS_OF_CELLS:
        raise DecodeError(f"unsupported blob tx version {version}")
    return sidecar


def check(sidecar: Sidecar | None, hashes: Sequence[bytes], *, version: int, most: int) -> None:
    """Whether a transaction naming these blob hashes may enter a pool with this sidecar (geth: validateBlobSidecar).

    `version` is the one of the fork, `most` the number of blobs a transaction may carry. Raises Rejected, in geth's order:
    "blob_sidecar_missing", "blob_count" (count, limit), "blob_sidecar_invalid" with geth's words as `text`.
    """
    if sidecar is None:
        raise Rejected("blob_sidecar_missing")
    commitments = len(sidecar.commitments)
    if commitments != len(hashes):
        raise _invalid(f"invalid number of {commitments} blob commitments compared to {len(hashes)} blob hashes")
    for index, (computed, named) in enumerate(zip(sidecar.versioned_hashes, hashes, strict=True)):
        if computed != named:
            text = f"blob {index}: computed hash 0x{computed.hex()} mismatches transaction one 0x{named.hex()}"
            raise _invalid(text)
    if len(hashes) > most:
        raise Rejected("blob_count", count=len(hashes), limit=most)
    if sidecar.version != version:
        raise _invalid(f"Wrong sidecar format: unexpected sidecar version, want: {version}, got: {sidecar.version}")
    proofs, expected = len(sidecar.proofs), commitments * (CELLS_PER_BLOB if version == PROOFS_OF_CELLS else 1)
    if proofs != expected:
        raise _invalid(f"Wrong sidecar format: invalid number of {proofs} blob proofs expected {expected}")
    if not sidecar.blobs:
        raise _invalid("blobless blob transaction")
    if len(sidecar.blobs) != commitments:
        raise _invalid(f"invalid number of {len(sidecar.blobs)} blobs compared to {commitments} commitments")
    _check_proofs(sidecar)


def _invalid(text: str) -> Rejected:
    return Rejected("blob_sidecar_invalid", text=text)


def _check_proofs(sidecar: Sidecar) -> None:
    import ckzg

    blobs, commitments, proofs = sidecar.blobs, sidecar.commitments, sidecar.proofs
    try:
        if sidecar.version == PROOFS_OF_BLOBS:
            joined = (b"".join(blobs), b"".join(commitments), b"".join(proofs))
            proven = ckzg.verify_blob_kzg_proof_batch(*joined, trusted_setup())
        else:
            cells = [cell for blob in blobs for cell in ckzg.compute_cells(blob, trusted_setup())]
            repeated = [commitment for commitment in commitments for _ in range(CELLS_PER_BLOB)]
            indices = list(range(CELLS_PER_BLOB)) * len(blobs)
            proven = ckzg.verify_cell_kzg_proof_batch(repeated, indices, cells, list(proofs), trusted_setup())
    except (RuntimeError, ValueError):  # ckzg's for bytes that are no blob, or no point of the curve
        proven = False
    if not proven:
        raise _invalid("KZG verification error: can't verify opening proof")


def with_cell_proofs(sidecar: Sidecar) -> Sidecar:
    """The same blobs with proofs of their cells, as geth makes them for senders that know proofs of blobs only.

    Raises DecodeError.
    """
    import ckzg

    try:
        proofs = [ckzg.compute_cells_and_kzg_proofs(blob, trusted_setup())[1] for blob in sidecar.blobs]
    except (RuntimeError, ValueError):
        text = "scalar is not canonical when interpreted as a big integer in big-endian"
        raise DecodeError(f"blob sidecar conversion failed: {text}") from None
    flat = tuple(bytes(proof) for each in proofs for proof in each)
    return Sidecar(PROOFS_OF_CELLS, sidecar.blobs, sidecar.commitments, flat)


@cache
def trusted_setup() -> Any:
    """The outcome of the KZG ceremony, as py-evm carries it."""
    import ckzg

    package = find_spec("eth")
    assert package is not None, "py-evm is installed with the devnet"
    assert package.origin is not None, "it is a package with code"
    return ckzg.load_trusted_setup(str(Path(package.origin).parent / "_utils" / "kzg_trusted_setup.txt"), 0)
