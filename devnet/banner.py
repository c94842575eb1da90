"""What a devnet says of itself at its start, as anvil says it: tools read accounts and keys from either."""

from devnet.accounts import MNEMONIC
from devnet.encoding import checksum, data
from devnet.node import Node
from devnet.txpool.profiles import ETHER

RULE = "=================="


def banner(node: Node) -> str:
    """The text before the line `Listening on …`."""
    settings, genesis = node.settings, node.chain.blocks[0].header

    def held(address: bytes) -> str:
        ether, wei = divmod(node.world.balance(address), ETHER)
        return f"{ether}.{wei:018d}"

    sections = {
        "Available Accounts": [
            f"({at}) {checksum(item.address)} ({held(item.address)} ETH)" for at, item in enumerate(node.accounts)
        ],
        "Private Keys": [f"({at}) {data(item.key)}" for at, item in enumerate(node.accounts)],
        "Chain ID": [str(settings.chain_id)],
        "Base Fee": [str(genesis.base_fee)],
        "Gas Limit": [str(genesis.gas_limit)],
        "Genesis Timestamp": [str(genesis.timestamp)],
        "Genesis Number": [str(genesis.number)],
    }
    texts = [f"{title}\n{RULE}\n\n" + "\n".join(lines) + "\n" for title, lines in sections.items()]
    wallet = settings.wallet
    phrase = f"Mnemonic:          {wallet.mnemonic}\nDerivation path:   {wallet.path}\n"
    texts.insert(2, f"Wallet\n{RULE}\n{phrase}")
    warning = (
        "" if wallet.mnemonic != MNEMONIC else "These keys are public: whatever is sent to them elsewhere is lost.\n\n"
    )
    return f"{settings.client_version}\n\n{warning}" + "\n".join(texts)


def configuration(node: Node) -> dict[str, object]:
    """What --config-out writes: accounts, keys and fees under anvil's names, amounts in wei as decimal text."""
    settings = node.settings
    return {
        "available_accounts": [data(item.address) for item in node.accounts],
        "private_keys": [data(item.key) for item in node.accounts],
        "wallet": {"mnemonic": settings.wallet.mnemonic, "derivation_path": settings.wallet.path},
        "base_fee": str(node.chain.blocks[0].header.base_fee),
        "gas_price": str(node.miner.next_context().base_fee + settings.least_tip),
        "gas_limit": str(node.pool.rules.gas_limit),
        "genesis_timestamp": str(node.chain.blocks[0].header.timestamp),
    }
