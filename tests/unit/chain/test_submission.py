"""What nodes say, and what we make of it."""

import pytest

from chain.submission import BY_PREFIX, Verdict, answer, classify, detail

V = Verdict
SAID = [
    (-32003, "transaction already imported", V.ALREADY_KNOWN),
    (-32000, "already known", V.ALREADY_KNOWN),
    (-32000, "AlreadyKnown", V.ALREADY_KNOWN),
    (-32000, "Known transaction", V.ALREADY_KNOWN),
    (-32000, "known transaction. transaction with hash 0x12 is already in the system", V.ALREADY_KNOWN),
    (-32010, "Transaction with the same hash was already imported.", V.ALREADY_KNOWN),
    (-32000, "known transaction: 0x12", V.ALREADY_KNOWN),
    (-32000, "Transaction with the same hash was already imported", V.ALREADY_KNOWN),
    (-32000, "ALREADY_EXISTS: already known", V.ALREADY_KNOWN),
    (-32000, "tx already in mempool", V.ALREADY_KNOWN),
    (-32603, "Transaction nonce too low", V.NONCE_TOO_LOW),
    (-32000, "NonceTooLow", V.NONCE_TOO_LOW),
    (-32003, "nonce too low", V.NONCE_TOO_LOW),
    (-32000, "nonce too low: next nonce 1, tx nonce 0", V.NONCE_TOO_LOW),
    (-32000, "nonce too low: address 0xA, tx: 3 state: 5", V.NONCE_TOO_LOW),
    (-32001, "Nonce too low", V.NONCE_TOO_LOW),
    (-32010, "OldNonce, Current nonce: 5", V.NONCE_TOO_LOW),
    (-32010, "Transaction nonce is too low. Try incrementing the nonce.", V.NONCE_TOO_LOW),
    (-32003, "replacement transaction underpriced", V.REPLACEMENT_UNDERPRICED),
    (-32000, "Replacement transaction underpriced", V.REPLACEMENT_UNDERPRICED),
    (-32000, "replacement transaction underpriced: new tx gas fee cap 1 <= 2", V.REPLACEMENT_UNDERPRICED),
    (-32010, "ReplacementNotAllowed", V.REPLACEMENT_UNDERPRICED),
    (-32000, "ReplaceUnderpriced", V.REPLACEMENT_UNDERPRICED),
    (-32000, "could not replace existing tx", V.REPLACEMENT_UNDERPRICED),
    (-32000, "transaction underpriced", V.UNDERPRICED),
    (-32000, "transaction underpriced: gas tip cap 1, minimum needed 25000000000", V.UNDERPRICED),
    (-32000, "transaction gas price below minimum: gas tip cap 0, minimum needed 1", V.UNDERPRICED),
    (-32003, "max fee per gas less than block base fee", V.UNDERPRICED),
    (-32009, "Gas price below configured minimum gas price", V.UNDERPRICED),
    (-32010, "FeeTooLowToCompete", V.UNDERPRICED),
    (-32000, "FeeTooLow", V.UNDERPRICED),
    (-32000, "UnderPriced", V.UNDERPRICED),
    (-32000, "InsufficientFunds", V.INSUFFICIENT_FUNDS),
    (-32003, "Insufficient funds for gas * price + value", V.INSUFFICIENT_FUNDS),
    (-32000, "insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1", V.INSUFFICIENT_FUNDS),
    (-32004, "Upfront cost exceeds account balance", V.INSUFFICIENT_FUNDS),
    (-32000, "intrinsic gas too low: gas 21000, minimum needed 22600", V.REJECTED),
    (-32000, "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit", V.REJECTED),
    (-32003, "Intrinsic gas exceeds gas limit", V.REJECTED),
    (-32000, "oversized data: transaction size 200000, limit 131072", V.REJECTED),
    (-32000, "exceeds block gas limit", V.REJECTED),
    (-32003, "invalid chain id for signer", V.REJECTED),
    (-32000, "invalid sender: invalid chain id for signer: have 1 want 31337", V.REJECTED),
    (-32000, "tx fee (2.10 ether) exceeds the configured cap (1.00 ether)", V.REJECTED),
    (-32602, "Failed to decode transaction", V.REJECTED),
    (-32000, "rlp: value size exceeds available input length", V.REJECTED),
    (-32016, "over rate limit", V.RATE_LIMITED),
    (-32016, "slow down", V.RATE_LIMITED),
    (-32005, "daily request count exceeded, request rate limited", V.RATE_LIMITED),
    (-32005, "limit exceeded", V.RATE_LIMITED),
    (-32005, "project ID request rate exceeded", V.RATE_LIMITED),
    # not definite, whatever the code
    (-32000, "in-flight transaction limit reached for delegated accounts", V.AMBIGUOUS),
    (-32000, "address already reserved", V.AMBIGUOUS),
    (-32000, "transaction indexing is in progress", V.AMBIGUOUS),
    (-32003, "response too large", V.AMBIGUOUS),
    (-32000, "nonce too high: tx nonce 7, gapped nonce 5", V.AMBIGUOUS),
    (-32000, "txpool is full", V.AMBIGUOUS),
    (-32000, "sequencer temporarily not available", V.AMBIGUOUS),
    (-32011, "no backend is currently healthy to serve traffic", V.AMBIGUOUS),
    (-32015, "gateway timeout", V.AMBIGUOUS),
    (-32603, "internal error", V.AMBIGUOUS),
    (-32000, "the nonce too low", V.AMBIGUOUS),
    (None, "", V.AMBIGUOUS),
    (0, "<html>502 Bad Gateway</html>", V.AMBIGUOUS),
]


@pytest.mark.parametrize(("code", "message", "verdict"), SAID)
def test_what_nodes_say(code: int | None, message: str, verdict: Verdict) -> None:
    """[B24] [B25]"""
    assert classify(code, message) is verdict
    assert classify(code, f"  {message.upper()} ") is verdict


def test_the_table_is_normalised() -> None:
    for prefix in BY_PREFIX:
        assert prefix == prefix.lower()
        assert "  " not in prefix
        assert classify(None, prefix) is BY_PREFIX[prefix]


def test_details_are_bounded_printable_and_without_urls() -> None:
    text = detail("see https://node.example/v3/SECRET?key=1\n\x1b[31m" + "x" * 5000)
    assert "SECRET" not in text
    assert text.startswith("see <url>")
    assert len(text) == 300
    assert text.isprintable()
    assert answer(-32000, "already  known").detail == "already known"


@pytest.mark.parametrize(
    ("message", "data", "verdict"),
    [
        ("", {"message": "nonce too low"}, V.NONCE_TOO_LOW),
        ("Internal error", {"code": -32000, "message": "already known"}, V.ALREADY_KNOWN),
        ("Internal error", "nonce too low", V.NONCE_TOO_LOW),
        ("already known", {"message": "nonce too low"}, V.ALREADY_KNOWN),
        ("Internal error", {"message": "who knows"}, V.AMBIGUOUS),
        ("execution reverted", "0x08c379a0", V.AMBIGUOUS),
        ("Internal error", {"message": {"deeper": 1}}, V.AMBIGUOUS),
        ("Internal error", [1], V.AMBIGUOUS),
        ("Internal error", None, V.AMBIGUOUS),
    ],
)
def test_the_nodes_words_may_be_nested(message: str, data: object, verdict: Verdict) -> None:
    """[B28]"""
    said = answer(-32603, message, data)
    assert said.verdict is verdict
    if verdict is not V.AMBIGUOUS and isinstance(data, dict) and message != "already known":
        assert data["message"] in said.detail
