"""Bytes to values and back: RLP, hashes, transactions, blocks, tries. Nothing here knows a chain."""
