"""The pytest plugin as other people use it: test files of a project of their own, beside which nothing of ours lies."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import eth_account  # noqa: F401  (here once, and not in every session below)
import pytest

pytest_plugins = ["pytester"]

DOCUMENT = (Path(__file__).parents[2] / "docs" / "devnet.md").read_text()
# The sender of the documentation, with its tests.
EXAMPLE = dedent(
    DOCUMENT.partition("## In pytest\n")[2].partition("\n    import json\n")[2].partition("\n`--devnet-seed")[0]
)
WRONG_SENDER = '''
    from itertools import count

    from eth_account import Account
    from sender import SHOP, ask

    def pay(url, key):
        """Signs another payload for the nonce whenever a send seems to have failed."""
        account = Account.from_key(key)
        nonce = int(ask(url, "eth_getTransactionCount", account.address, "latest")["result"], 16)
        for attempt in count(1):
            fees = {"maxFeePerGas": 10**10 * 2**attempt, "maxPriorityFeePerGas": 10**9 * 2**attempt}
            body = {"chainId": 31337, "nonce": nonce, "gas": 21000, "to": SHOP, "value": attempt}
            raw = account.sign_transaction(body | fees).raw_transaction.to_0x_hex()
            if "result" in ask(url, "eth_sendRawTransaction", raw):
                return
'''


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with the senders in it."""
    pytester.makepyfile(sender="import json\n" + EXAMPLE, wrong_sender=WRONG_SENDER)
    return pytester


def run(project: pytest.Pytester, *flags: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--assert=plain", *flags)


def test_the_plugin_needs_only_pytest_and_the_standard_library_to_load() -> None:
    program = "import pytest, sys; before = set(sys.modules); import devnet.pytest_plugin\n"
    program += "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) - set(sys.stdlib_module_names) == {"devnet"}


def test_a_test_gets_a_node_with_accounts_mining_time_reorgs_and_a_ledger(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from sender import SHOP, ask, pay, sign

        def head(devnet, field):
            return int(devnet.rpc("eth_getBlockByNumber", "latest", False)[field], 16)

        def test_a_payment_is_mined_at_once(devnet):
            account = devnet.accounts[0]
            assert pay(devnet.url, account.key, 5)["status"] == "0x1"
            assert devnet.rpc("eth_getBalance", SHOP, "latest") == "0x5"
            (row,) = devnet.submissions(account.address)
            assert (row["verdict"], row["minedBlock"]) == ("pending", "0x1")
            assert devnet.violations() == []

        def test_time_and_blocks_on_order(devnet):
            before = head(devnet, "timestamp")
            assert devnet.mine(3) == 3
            devnet.advance(3600)
            assert head(devnet, "number") == 4
            assert head(devnet, "timestamp") >= before + 3600

        def test_automine_off_and_a_reorg(devnet):
            devnet.automine(False)
            signed = sign(devnet.url, devnet.accounts[1].key, 1)
            devnet.rpc("eth_sendRawTransaction", signed.raw_transaction.to_0x_hex())
            assert devnet.rpc("eth_getTransactionReceipt", signed.hash.to_0x_hex()) is None
            devnet.mine()
            done = devnet.reorg(1, keep="none")
            assert done["requeued"] == [signed.hash.to_0x_hex()]

        def test_one_fault_for_a_while(devnet):
            with devnet.fault("error", times=1, arg="besu.nonce_too_low") as name:
                assert devnet.rpc("devnet_faults")[0]["id"] == name
                with pytest.raises(Exception, match="-32001"):
                    devnet.rpc("eth_sendRawTransaction", "0x02c0")
            assert devnet.rpc("devnet_faults") == []

        @pytest.mark.devnet("--no-mining", "--profile", "besu", "--chain-id", "5")
        def test_other_flags(devnet):
            assert devnet.rpc("eth_chainId") == "0x5"
            assert devnet.rpc("anvil_getAutomine") is False
            assert devnet.rpc("devnet_setProfile") == "besu"

        def test_two_nodes(devnet, devnet_node):
            other = devnet_node("--accounts", "2")
            assert other.url != devnet.url
            assert (len(devnet.accounts), len(other.accounts)) == (10, 2)
        """
    )
    run(project).assert_outcomes(passed=6)


def test_each_test_finds_the_node_as_the_first_one_did(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from sender import pay, sign

        seen = []

        @pytest.fixture(autouse=True)
        def untouched(devnet):
            seen.append(devnet.url)
            assert devnet.submissions() == devnet.violations() == []
            assert devnet.rpc("eth_blockNumber") == "0x0"
            assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"}
            assert devnet.rpc("anvil_getAutomine") is True
            assert devnet.rpc("devnet_faults") == []
            assert devnet.rpc("devnet_setProfile") == "geth"
            assert devnet.rpc("devnet_clock")["manual"] is False
            assert devnet.rpc("devnet_mining")["paused"] is False

        def test_chain_pool_and_mode(devnet):
            pay(devnet.url, devnet.accounts[0].key, 1)
            devnet.automine(False)
            signed = sign(devnet.url, devnet.accounts[0].key, 1)
            devnet.rpc("eth_sendRawTransaction", signed.raw_transaction.to_0x_hex())

        def test_interval_and_faults(devnet):
            devnet.interval(0.01)
            devnet.rpc("devnet_fault", {"kind": "http", "match": {"method": "eth_*"}})
            devnet.rpc("devnet_mining", {"pause": True})
            devnet.rpc("devnet_nodes", {"n": 2, "lag": [0, 3]})

        def test_it_is_still_the_same_process(devnet):
            assert len(set(seen)) == 1
            devnet.rpc("devnet_setProfile", "besu")

        def test_a_profile_cannot_be_put_back_and_the_process_is_replaced(devnet):
            assert seen[-1] != seen[-2]
            devnet.rpc("devnet_clock", {"manual": True})
            devnet.rpc("anvil_setChainId", 7)

        def test_a_node_that_is_gone_is_replaced(devnet):
            assert seen[-1] != seen[-2]
            devnet.stop()

        def test_after_that():
            assert seen[-1] != seen[-2]
        """
    )
    run(project).assert_outcomes(passed=6)


def test_the_documented_sender_which_resends_the_same_bytes_endures_bad_hours(project: pytest.Pytester) -> None:
    project.makepyfile(test_example="import json\n" + EXAMPLE)
    run(project).assert_outcomes(passed=3)
    for seed in (1, 2):
        run(project, "-k", "bad_hour", "--devnet-seed", str(seed)).assert_outcomes(passed=1, deselected=2)


def test_a_sender_that_signs_anew_is_told_what_it_did(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from wrong_sender import pay

        @pytest.mark.devnet("--no-mining")
        def test_it_pays(faulted_devnet):
            faulted_devnet.rpc("devnet_fault", {"kind": "accept_as_error", "times": 1, "match": {"method": "eth_send*"}})
            pay(faulted_devnet.url, faulted_devnet.accounts[0].key)

        def test_it_fails_by_itself(faulted_devnet):
            raise ValueError("a defect of its own")
        """
    )
    result = run(project, "--devnet-seed", "5")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*the devnet's ledger shows what no sender may do (--devnet-seed 5):",
            "*nonce_reuse by 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266, nonce 0: two different intents",
            "*#* 0x* pending, met *",
            "*#* 0x* pending*",
        ]
    )


def test_workers_of_xdist_have_nodes_of_their_own(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from sender import pay

        @pytest.mark.parametrize("time", range(2))
        def test_it_pays(devnet, time):
            assert pay(devnet.url, devnet.accounts[0].key, 1)["blockNumber"] == "0x1"
        """
    )
    run(project, "-n", "2").assert_outcomes(passed=2)


def test_a_devnet_that_cannot_start_says_why_and_a_silent_one_has_no_keys(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest

        @pytest.mark.devnet("--hardfork", "homestead")
        def test_no_such_node(devnet): ...

        @pytest.mark.devnet("--silent")
        def test_no_keys(devnet):
            with pytest.raises(RuntimeError, match="start it without --silent"):
                devnet.accounts
        """
    )
    result = run(project)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*RuntimeError: the node did not start: devnet: *homestead is not supported*"])
