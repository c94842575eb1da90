"""Keys that sign for the tests with eth-account, which the devnet itself does not sign with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eth_account import Account
from eth_utils import to_checksum_address

GWEI = 10**9
ETHER = 10**18
KEYS = (
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
)
SOMEONE = "0x" + "5e" * 20


@dataclass(frozen=True)
class Signed:
    raw: str
    hash: str


@dataclass(frozen=True)
class Wallet:
    key: str

    @property
    def address(self) -> str:
        return str(Account.from_key(self.key).address).lower()

    def sign(self, nonce: int, **fields: Any) -> Signed:
        """A signed transaction: type 2 unless `gasPrice` is given; a transfer of 1 wei unless told otherwise."""
        body: dict[str, Any] = {"chainId": 31337, "nonce": nonce, "gas": 21_000, "to": SOMEONE, "value": 1} | fields
        if "gasPrice" not in body:
            body.setdefault("maxFeePerGas", 10 * GWEI)
            body.setdefault("maxPriorityFeePerGas", GWEI)
        if body["to"]:
            body["to"] = to_checksum_address(body["to"])
        kept = {name: value for name, value in body.items() if value is not None}
        signed = Account.sign_transaction(kept, self.key)
        return Signed("0x" + bytes(signed.raw_transaction).hex(), "0x" + bytes(signed.hash).hex())

    def create(self, nonce: int, code: bytes, gas: int = 1_000_000, **fields: Any) -> Signed:
        return self.sign(nonce, to=None, value=0, gas=gas, data="0x" + code.hex(), **fields)

    def call(self, nonce: int, to: str, data: bytes = b"", gas: int = 300_000, **fields: Any) -> Signed:
        return self.sign(nonce, **({"to": to, "value": 0, "gas": gas, "data": "0x" + data.hex()} | fields))


ALICE, BOB, CAROL = (Wallet(key) for key in KEYS)


def words(values: Sequence[int | str]) -> bytes:
    """ABI words of numbers and addresses."""
    return b"".join((int(value, 16) if isinstance(value, str) else value).to_bytes(32, "big") for value in values)
