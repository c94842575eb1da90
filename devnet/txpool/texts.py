"""What each client says when it refuses a transaction: error code and text by reason, as data.

A text is a template over the facts that `Pool` gives with a refusal. Every table has every reason: where a client has no
answer of its own (a limit it does not know, say), it has geth's. Sources are the clients' own: go-ethereum 1.17
core/txpool, anvil 1.7.1 as observed, Besu RpcErrorType, Nethermind AcceptTxResult, Erigon txpoolcfg.DiscardReason, Reth
rpc-eth-types, Nitro gethexec with go-ethereum's state transition, Bor's fork of geth.
"""

from collections.abc import Mapping

from devnet.errors import INTERNAL_ERROR, INVALID_PARAMS, SERVER_ERROR

Text = tuple[int, str]
Texts = Mapping[str, Text]

_REJECTED = -32003
_NETHERMIND_REJECTED = -32010


def _all(code: int, texts: Mapping[str, str]) -> dict[str, Text]:
    return {reason: (code, text) for reason, text in texts.items()}


_FUNDS = "insufficient funds for gas * price + value"
_SHORT = f"{_FUNDS}: balance {{balance}}, "

GETH: Texts = _all(
    SERVER_ERROR,
    {
        # bytes that are no transaction
        "undecodable": "{text}",
        "empty": "typed transaction too short",
        # geth's RPC layer
        "fee_cap": "tx fee ({fee_ether:.2f} ether) exceeds the configured cap ({cap_ether:.2f} ether)",
        "unprotected": "only replay-protected (EIP-155) transactions allowed over RPC",
        "unknown_account": "unknown account",
        # the transaction by itself
        "already_known": "already known",
        "type_not_supported": "transaction type not supported: type {type} rejected, pool not yet in {fork}",
        "oversized": "oversized data: transaction size {size}, limit {limit}",
        "initcode": "max initcode size exceeded: code size {size} limit {limit}",
        "tx_gas_cap": "transaction gas limit too high (cap: {cap}, tx: {gas})",
        "block_gas_limit": "exceeds block gas limit",
        "tip_above_fee_cap": "max priority fee per gas higher than max fee per gas",
        "wrong_chain": "invalid sender: invalid chain id for signer: have {have} want {want}",
        "invalid_signature": "invalid sender: invalid transaction v, r, s values",
        "nonce_max": "nonce has max value",
        "intrinsic_gas": "intrinsic gas too low: gas {gas}, minimum needed {needed}",
        "floor_gas": "insufficient gas for floor data gas cost: gas {gas}, minimum needed {needed}",
        "tip_too_low": "transaction gas price below minimum: gas tip cap {tip}, minimum needed {needed}",
        "price_too_low": "transaction underpriced",
        "fee_below_base": "max fee per gas less than block base fee: address {sender}, "
        "maxFeePerGas: {fee}, baseFee: {base_fee}",
        # blob transactions (EIP-4844)
        "blob_fee_too_low": "transaction gas price below minimum: blob fee cap {fee}, minimum needed {needed}",
        "blob_sidecar_missing": "missing sidecar in blob transaction",
        "blob_sidecar_invalid": "{text}",
        "blob_count": "transaction blob limit exceeded: blob count {count}, limit {limit}",
        # set-code transactions (EIP-7702)
        "no_authorizations": "set code tx must have at least one authorization tuple",
        # the sender's account
        "sender_not_eoa": "sender not an eoa: address {sender}, len(code): {size}",
        "nonce_too_low": "nonce too low: next nonce {next}, tx nonce {nonce}",
        "nonce_too_high": "nonce too high: tx nonce {nonce}, gapped nonce {gap}",
        "nonce_too_far": "nonce too high: tx nonce {nonce}, gapped nonce {gap}",
        "insufficient_funds": _SHORT + "tx cost {cost}, overshot {overshot}",
        "insufficient_funds_queued": _SHORT + "queued cost {queued}, tx cost {cost}, overshot {overshot}",
        "insufficient_funds_bumped": _SHORT + "queued cost {queued}, tx bumped {bump}, overshot {overshot}",
        "account_limit": "account limit exceeded: pooled {used} txs",
        "delegated_in_flight": "in-flight transaction limit reached for delegated accounts",
        "delegated_gap": "gapped-nonce tx from delegated accounts",
        "authority_reserved": "authority already reserved",
        "reserved": "address already reserved",
        # the rest of the pool
        "replacement_underpriced": "replacement transaction underpriced",
        "blob_replacement_underpriced": "replacement transaction underpriced: new tx {what} {new} {relation}",
        "underpriced": "transaction underpriced",
        "pool_full": "txpool is full",
        "future_replaces_pending": "future transaction tries to replace pending",
    },
) | {"contract_creation_without_data": (SERVER_ERROR, "contract creation without any data provided")}

BOR: Texts = GETH

ANVIL: Texts = {
    **GETH,
    **_all(
        INVALID_PARAMS,
        {
            "undecodable": "Failed to decode transaction",
            "empty": "Empty transaction data",
            "unknown_account": "No Signer available",
        },
    ),
    **_all(
        SERVER_ERROR,
        {
            "intrinsic_gas": "intrinsic gas too low",
            "floor_gas": "intrinsic gas too low",
            "block_gas_limit": "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit",
            "tx_gas_cap": "intrinsic gas too high -- tx.gas_limit > env.cfg.tx_gas_limit_cap",
        },
    ),
    **_all(
        _REJECTED,
        {
            "already_known": "transaction already imported",
            "wrong_chain": "invalid chain id for signer",
            "nonce_too_low": "nonce too low",
            "initcode": "max initcode size exceeded",
            "insufficient_funds": "Insufficient funds for gas * price + value",
            "insufficient_funds_queued": "Insufficient funds for gas * price + value",
            "insufficient_funds_bumped": "Insufficient funds for gas * price + value",
            "tip_above_fee_cap": "max priority fee per gas higher than max fee per gas",
            "fee_below_base": "max fee per gas less than block base fee",
            "replacement_underpriced": "replacement transaction underpriced",
            "blob_replacement_underpriced": "replacement transaction underpriced",
            "sender_not_eoa": "sender not an eoa",
        },
    ),
}

_INTRINSIC_BESU = (-32003, "Intrinsic gas exceeds gas limit")
_UPFRONT = (-32004, "Upfront cost exceeds account balance")

BESU: Texts = {
    **GETH,
    **_all(
        SERVER_ERROR,
        {
            "already_known": "Known transaction",
            "replacement_underpriced": "Replacement transaction underpriced",
            "blob_replacement_underpriced": "Replacement transaction underpriced",
            "nonce_too_far": "Transaction nonce is too distant from current sender nonce",
            "fee_cap": "Transaction fee cap exceeded",
            "wrong_chain": "Wrong chainId",
            "unprotected": "ChainId is required",
            "tip_above_fee_cap": "Max priority fee per gas exceeds max fee per gas",
            "blob_count": "Total blob gas too high",
        },
    ),
    **_all(
        INVALID_PARAMS,
        {
            "undecodable": "Invalid transaction params (missing or incorrect)",
            "empty": "Invalid transaction params (missing or incorrect)",
            "type_not_supported": "Invalid transaction type",
        },
    ),
    "initcode": (INTERNAL_ERROR, "Internal error"),
    "nonce_too_low": (-32001, "Nonce too low"),
    "invalid_signature": (-32002, "Invalid signature"),
    "intrinsic_gas": _INTRINSIC_BESU,
    "floor_gas": _INTRINSIC_BESU,
    "insufficient_funds": _UPFRONT,
    "insufficient_funds_queued": _UPFRONT,
    "insufficient_funds_bumped": _UPFRONT,
    "block_gas_limit": (-32005, "Transaction gas limit exceeds block gas limit"),
    "tx_gas_cap": (-32005, "Transaction gas limit exceeds block gas limit"),
    "nonce_too_high": (-32006, "Nonce too high"),
    "sender_not_eoa": (-32007, "Sender account not authorized to send transactions"),
    "price_too_low": (-32009, "Gas price below configured minimum gas price"),
    "tip_too_low": (-32009, "Gas price below configured minimum gas price"),
    "fee_below_base": (-32009, "Gas price below current base fee"),
}

_TOTAL = "Account balance: {balance}, cumulative cost: {total}"
_INVALID_NETHERMIND = {
    "intrinsic_gas": "intrinsic gas too low",
    "floor_gas": "intrinsic gas too low",
    "wrong_chain": "InvalidTxChainId: Expected {want}, got {have}.",
    "unprotected": "InvalidTxSignature: Signature is invalid.",
    "tip_above_fee_cap": "InvalidMaxPriorityFeePerGas: Cannot be higher than maxFeePerGas.",
    "initcode": "max initcode size exceeded",
    "tx_gas_cap": "TxGasLimitCapExceeded: Gas limit {gas} exceeded cap of {cap}.",
    "nonce_max": "NonceTooHigh: Nonce exceeds max nonce",
    "no_authorizations": "MissingAuthorizationList: Must be set.",
}
_NONCE_NETHERMIND = "Current nonce: {next}, nonce of rejected tx: {nonce}"
_GAP_NETHERMIND = "Future nonce. Expected nonce: {gap}"

NETHERMIND: Texts = {
    **GETH,
    **_all(
        SERVER_ERROR,
        {
            "nonce_too_low": f"nonce too low, {_NONCE_NETHERMIND}",
            "nonce_too_high": f"nonce too high, {_GAP_NETHERMIND}",
            "nonce_too_far": "nonce too far in future",
            "account_limit": "nonce too far in future",
            "insufficient_funds": f"{_FUNDS}, {_TOTAL}",
            "insufficient_funds_queued": f"{_FUNDS}, {_TOTAL}",
            "insufficient_funds_bumped": f"{_FUNDS}, {_TOTAL}",
            "block_gas_limit": "gas limit reached, Gas limit: {block_gas}, gas limit of rejected tx: {gas}",
            "invalid_signature": "failed to recover sender",
            "type_not_supported": "unsupported transaction type",
            "oversized": "transaction too large, Max size: {limit}, tx size: {size}",
            "sender_not_eoa": "sender not an eoa",
            "reserved": "pending transaction type conflict",
            "delegated_gap": "delegation nonce gap",
            "delegated_in_flight": "delegation nonce gap",
            "authority_reserved": "delegation authority has pending transaction",
            "tip_too_low": "transaction underpriced",
            "pool_full": "transaction underpriced",
            "blob_replacement_underpriced": "replacement transaction underpriced",
            **{reason: f"transaction invalid, {text}" for reason, text in _INVALID_NETHERMIND.items()},
        },
    ),
    "undecodable": (_NETHERMIND_REJECTED, "Invalid RLP."),
    "empty": (_NETHERMIND_REJECTED, "Invalid RLP."),
}

NETHERMIND_OLD: Texts = {
    **NETHERMIND,
    **_all(
        _NETHERMIND_REJECTED,
        {
            "already_known": "AlreadyKnown",
            "nonce_too_low": f"OldNonce, {_NONCE_NETHERMIND}",
            "nonce_too_high": f"NonceGap, {_GAP_NETHERMIND}",
            "nonce_too_far": "NonceTooFarInFuture",
            "account_limit": "NonceTooFarInFuture",
            "insufficient_funds": f"InsufficientFunds, {_TOTAL}",
            "insufficient_funds_queued": f"InsufficientFunds, {_TOTAL}",
            "insufficient_funds_bumped": f"InsufficientFunds, {_TOTAL}",
            "replacement_underpriced": "ReplacementNotAllowed",
            "blob_replacement_underpriced": "ReplacementNotAllowed",
            "underpriced": "FeeTooLowToCompete",
            "pool_full": "FeeTooLowToCompete",
            "tip_too_low": "FeeTooLow",
            "block_gas_limit": "GasLimitExceeded, Gas limit: {block_gas}, gas limit of rejected tx: {gas}",
            "invalid_signature": "FailedToResolveSender",
            "sender_not_eoa": "SenderIsContract",
            "reserved": "PendingTxsOfConflictingType",
            "oversized": "MaxTxSizeExceeded, Max size: {limit}, tx size: {size}",
            **{reason: f"Invalid, {text}" for reason, text in _INVALID_NETHERMIND.items()},
        },
    ),
}

ERIGON: Texts = {
    **GETH,
    **_all(
        SERVER_ERROR,
        {
            "already_known": "ALREADY_EXISTS: already known",
            "nonce_too_low": "INTERNAL_ERROR: nonce too low",
            "insufficient_funds": "INTERNAL_ERROR: insufficient funds",
            "insufficient_funds_queued": "INTERNAL_ERROR: insufficient funds",
            "insufficient_funds_bumped": "INTERNAL_ERROR: insufficient funds",
            "replacement_underpriced": "INTERNAL_ERROR: could not replace existing tx",
            "blob_replacement_underpriced": "FEE_TOO_LOW: replacement transaction underpriced",
            "intrinsic_gas": "INTERNAL_ERROR: IntrinsicGas",
            "floor_gas": "INTERNAL_ERROR: IntrinsicGas",
            "block_gas_limit": "INTERNAL_ERROR: gas limit is too high",
            "tx_gas_cap": "INTERNAL_ERROR: gas limit is too high",
            "price_too_low": "FEE_TOO_LOW: underpriced",
            "tip_too_low": "FEE_TOO_LOW: underpriced",
            "wrong_chain": "invalid chain id, expected: {want} got: {have}",
            "invalid_signature": "INVALID: invalid sender",
            "oversized": "INVALID: RLPTooLong",
            "initcode": "INVALID: initcode too large",
            "type_not_supported": "INVALID: fork supporting this transaction type is not activated yet",
            "account_limit": "INTERNAL_ERROR: spammer",
            "underpriced": "INTERNAL_ERROR: pending sub-pool is full",
            "pool_full": "INTERNAL_ERROR: pending sub-pool is full",
            "no_authorizations": "INTERNAL_ERROR: EIP-7702 transactions with an empty authorization list are invalid",
            "authority_reserved": "INTERNAL_ERROR: EIP-7702 transaction with authority already reserved",
            "blob_count": "INVALID: max number of blobs exceeded",
        },
    ),
}

RETH: Texts = {
    **GETH,
    **_all(
        INVALID_PARAMS,
        {
            "undecodable": "failed to decode signed transaction",
            "empty": "empty transaction data",
            "invalid_signature": "invalid transaction signature",
            "unknown_account": "unknown account",
        },
    ),
    **_all(
        SERVER_ERROR,
        {
            "intrinsic_gas": "intrinsic gas too low",
            "floor_gas": "intrinsic gas too low",
            "wrong_chain": "invalid chain ID",
            "initcode": "max initcode size exceeded",
            "fee_cap": "tx fee ({fee} wei) exceeds the configured cap ({cap} wei)",
            "nonce_too_high": "nonce too high",
            "nonce_too_far": "nonce too high",
            "blob_sidecar_missing": "blob sidecar not found for EIP4844 transaction",
            "blob_count": "too many blobs in transaction: have {count}, permitted {limit}",
            "blob_replacement_underpriced": "replacement transaction underpriced",
            "no_authorizations": "no items in authorization list for EIP7702 transaction",
        },
    ),
    **_all(
        _REJECTED,
        {
            "insufficient_funds": _FUNDS + ": have {balance} want {cost}",
            "insufficient_funds_queued": _FUNDS + ": have {balance} want {cost}",
            "insufficient_funds_bumped": _FUNDS + ": have {balance} want {cost}",
            "nonce_max": "nonce has max value",
            "tx_gas_cap": "gas limit too high",
            "tip_above_fee_cap": "max priority fee per gas higher than max fee per gas",
            "tip_too_low": "transaction priority fee below minimum required priority fee {needed}",
            "type_not_supported": "transaction type not supported",
            "sender_not_eoa": "sender is not an EOA",
            "account_limit": "txpool is full",
            "underpriced": "txpool is full",
            "pool_full": "txpool is full",
        },
    ),
}

_USED_NITRO = "nonce too low: address {sender}, tx: {nonce} state: {gap}"

NITRO: Texts = {
    **GETH,
    **_all(
        SERVER_ERROR,
        {
            "already_known": _USED_NITRO,
            "replacement_underpriced": _USED_NITRO,
            "nonce_too_low": "nonce too low: address {sender}, tx: {nonce} state: {next}",
            "nonce_too_high": "nonce too high: address {sender}, tx: {nonce} state: {gap}",
            "insufficient_funds": _FUNDS + ": address {sender} have {balance} want {cost}",
            "insufficient_funds_queued": _FUNDS + ": address {sender} have {balance} want {cost}",
            "insufficient_funds_bumped": _FUNDS + ": address {sender} have {balance} want {cost}",
            "intrinsic_gas": "intrinsic gas too low: have {gas}, want {needed}",
            "floor_gas": "insufficient gas for floor data gas cost: have {gas}, want {needed}",
            "tip_above_fee_cap": "max priority fee per gas higher than max fee per gas: address {sender}, "
            "maxPriorityFeePerGas: {tip}, maxFeePerGas: {fee}",
            "oversized": "oversized data",
            "type_not_supported": "transaction type not supported",
        },
    ),
}
