"""What the senders of a random plan sign: every type, every fate, at prices that outbid each other or do not."""

from functools import lru_cache
from typing import Any

from tests.devnet import blobs
from tests.devnet.bytecode import BOOM, COUNTER, FACTORY, TOGGLE, TOKEN, TRANSFER, deploying
from tests.devnet.test_set_code import authorization
from tests.devnet.wallet import ALICE, BOB, CAROL, ETHER, GWEI, SOMEONE, Signed, words

WALLETS = (ALICE, BOB, CAROL)
SENDERS = tuple(bytes.fromhex(wallet.address[2:]) for wallet in WALLETS)
COUNTING, REVERTING, TOGGLING, PAYING, DESTROYING = ("0x" + f"c{number}" * 20 for number in range(5))
CODES = {COUNTING: COUNTER, REVERTING: BOOM, TOGGLING: TOGGLE, PAYING: TOKEN, DESTROYING: FACTORY}

# Fee cap and tip in hundredths of a gwei. A tenth more on both replaces: 1 outbids 0, 2 does not, 3 does not pay for the
# first base fees, 4 outbids all, 5 raises the cap alone, 6 offers what a tip of zero is refused for.
PRICES = ((1000, 100), (1100, 110), (1050, 105), (60, 10), (4000, 500), (2000, 100), (900, 0))
KINDS = (
    "transfer",
    "legacy",
    "listed",
    "count",
    "boom",
    "create",
    "delegate",
    "toggle",
    "pay",
    "destroy",
    "to a friend",
    "a fortune",
    "short of gas",
    "data",
    "big",
)
RARE_KINDS = ("blob",)  # the first one takes seconds: the trusted setup is loaded


@lru_cache(maxsize=100_000)
def signed(who: int, kind: str, nonce: int, level: int) -> Signed:
    """A transaction of sender `who`; equal arguments give equal bytes."""
    wallet, friend = WALLETS[who], WALLETS[(who + 1 + level % 2) % len(WALLETS)]
    cap, tip = (hundredths * GWEI // 100 for hundredths in PRICES[level])
    fees: dict[str, Any] = {"maxFeePerGas": cap, "maxPriorityFeePerGas": tip}
    price: dict[str, Any] = {"gasPrice": cap}
    slot = "0x" + bytes(32).hex()
    match kind:
        case "transfer":
            return wallet.sign(nonce, **fees)
        case "legacy":
            return wallet.sign(nonce, value=2, **price)
        case "listed":
            listed = [{"address": COUNTING, "storageKeys": [slot]}]
            return wallet.call(nonce, COUNTING, accessList=listed, **price)
        case "count":
            return wallet.call(nonce, COUNTING, **fees)
        case "boom":
            return wallet.call(nonce, REVERTING, value=3, **fees)
        case "create":
            return wallet.create(nonce, deploying(COUNTER), gas=200_000, **fees)
        case "delegate":
            # The friend's nonce is guessed: often right, so that its waiting transactions are overtaken.
            allowed = authorization(friend, nonce, COUNTING)
            return wallet.sign(nonce, value=0, gas=200_000, type=4, authorizationList=[allowed], **fees)
        case "toggle":
            return wallet.call(nonce, TOGGLING, **fees)
        case "pay":
            return wallet.call(nonce, PAYING, TRANSFER + words([friend.address, 7]), **fees)
        case "destroy":
            return wallet.call(nonce, DESTROYING, value=5, **fees)
        case "to a friend":
            return wallet.sign(nonce, to=friend.address, value=ETHER, gas=100_000, **fees)
        case "a fortune":
            return wallet.sign(nonce, to=friend.address, value=4_000 * ETHER, gas=100_000, **fees)
        case "short of gas":
            return wallet.call(nonce, COUNTING, gas=23_000, **fees)
        case "data":
            return wallet.sign(nonce, to=SOMEONE, data="0x" + "ff00" * 300, gas=100_000, **fees)
        case "big":
            return wallet.sign(nonce, gas=900_000, value=4, **fees)
        case "blob":
            return blobs.sign(wallet, nonce, blobs=1 + level % 2, **fees)
        case _:
            raise ValueError(kind)
