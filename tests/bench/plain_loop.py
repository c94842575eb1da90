"""The baseline: what a careful person writes with web3.py and a lock, one transaction at a time."""

import time

import psycopg
from eth_account import Account
from web3 import HTTPProvider, Web3

_TABLES = """
CREATE TABLE wallet (address text PRIMARY KEY, next_nonce bigint NOT NULL);
CREATE TABLE sent (nonce bigint PRIMARY KEY, raw bytea NOT NULL, hash bytea NOT NULL);
"""


def transactions_per_second(conninfo: str, endpoint: str, key: bytes, chain_id: int, to: str, count: int) -> float:
    """Lock the nonce row, sign, insert, commit, send; `count` times. From the first lock to the last answer."""
    w3 = Web3(HTTPProvider(endpoint))
    account = Account.from_key(key)
    with psycopg.connect(conninfo) as connection:
        connection.execute("DROP TABLE IF EXISTS wallet, sent")
        connection.execute(_TABLES)
        first = w3.eth.get_transaction_count(account.address, "pending")
        connection.execute("INSERT INTO wallet VALUES (%s, %s)", (account.address, first))
        connection.commit()
        began = time.perf_counter()
        for _ in range(count):
            row = connection.execute("SELECT next_nonce FROM wallet WHERE address = %s FOR UPDATE", (account.address,))
            (nonce,) = row.fetchone() or (0,)
            fields = {"type": 2, "chainId": chain_id, "nonce": nonce, "to": to, "value": 1, "data": b"", "gas": 21_000}
            signed = account.sign_transaction(fields | {"maxFeePerGas": 20 * 10**9, "maxPriorityFeePerGas": 10**9})
            connection.execute("INSERT INTO sent VALUES (%s, %s, %s)", (nonce, signed.raw_transaction, signed.hash))
            connection.execute("UPDATE wallet SET next_nonce = %s WHERE address = %s", (nonce + 1, account.address))
            connection.commit()
            w3.eth.send_raw_transaction(signed.raw_transaction)
        return count / (time.perf_counter() - began)
