"""The bounded configurations that are searched. The right build breaks nothing in any of them.

Each is one account. The fast ones run with every test; the full ones (`make model`) are the same questions over more
executions, or with more happening at a time. State counts: docs/model.md, and printed by the tests.
"""

from tests.model.build import Scenario

FAST = (
    # Two executions, blocks taken back, bytes forgotten by the nodes.
    Scenario("two executions", reorg=True, splits_sign=False),
    Scenario("eviction", (1,), reorg=True, evict=True, splits_send=True),
    Scenario("threads of one holder", threads=True, reorg=True),
    Scenario("expiry apart from takeover", (1,), expiry=True, reorg=True),
    # Bump and cancel on one nonce.
    Scenario("bump and cancel", (1,), workers=1, bump=True, cancel=1, reorg=True, evict=True),
    Scenario("cancel", (1,), cancel=1, reorg=True),
    # Two steps.
    Scenario("two steps together", (2,), reorg=True, splits_sign=False),
    Scenario("two steps in order", (2,), in_order=True, cancel=1, reorg=True, revert=True, workers=1, evict=True),
    # A stranger, and the signer's policy.
    Scenario("foreign use", (1,), foreign=True, reorg=True),
    Scenario("foreign use of one of two", foreign=True, reorg=True, workers=1),
    Scenario("policy", (1,), policy=True, reorg=True, cancel=1),
    Scenario("policy refuses one of two", policy=True, workers=1),
    Scenario("reissue", (1,), foreign=True, reorg=True, reissue=True, splits_sign=False),
    # The rows go back.
    Scenario("rows restored unseen", (1,), restore="quiet", reorg=True),
    Scenario("rows restored unseen, cancel", (1,), workers=1, restore="quiet", cancel=1, reorg=True),
    Scenario("rows and journal restored", (1,), restore="timeline", shared_journal=True),
    Scenario("reopened", (1,), restore="timeline", reopen=True),
    Scenario("reopened without the journal", (1,), restore="timeline", shared_journal=True, reopen=True),
    Scenario("reopened, a wrong word", workers=1, splits_sign=False, restore="timeline", reopen=True, wrong_word=True),
    # The chain goes back past finality.
    Scenario("deep reorg", deep=True, cancel=1, workers=1, splits_sign=False),
    # Reconcile reads while another takes over.
    Scenario("reconcile beside a takeover", (1,), splits_reconcile=True, reorg=True, cancel=1, splits_sign=False),
)

FULL = (
    Scenario("two executions", reorg=True, evict=True),
    Scenario("two executions, bump", bump=True, reorg=True, splits_sign=False),
    Scenario("three executions", (1, 1, 1), workers=1, reorg=True, evict=True),
    Scenario("bump and cancel", (1,), bump=True, cancel=1, reorg=True, evict=True, splits_send=True),
    Scenario("two executions, cancel", cancel=1, reorg=True, splits_sign=False),
    Scenario("two steps together, cancel", (2,), cancel=1, reorg=True, splits_sign=False),
    Scenario("two steps together and one", (2, 1), reorg=True, splits_sign=False),
    Scenario("two steps in order, cancel", (2,), in_order=True, cancel=1, reorg=True, evict=True, revert=True),
    Scenario("two steps in order and one", (2, 1), in_order=True, reorg=True, revert=True, splits_sign=False),
    Scenario("foreign use of one of two", foreign=True, reorg=True, splits_sign=False),
    Scenario("foreign use, bump, cancel", (1,), foreign=True, reorg=True, bump=True, cancel=1, splits_sign=False),
    Scenario("policy refuses one of two", policy=True, reorg=True, splits_sign=False),
    Scenario("policy and bump", (1,), policy=True, bump=True, cancel=1, reorg=True, evict=True),
    Scenario("reissue, cancel", (1,), foreign=True, reorg=True, reissue=True, cancel=1, splits_sign=False),
    Scenario("rows restored unseen", restore="quiet", splits_sign=False),
    Scenario("rows restored unseen, foreign use", (1,), restore="quiet", foreign=True, reorg=True, cancel=1, workers=1),
    Scenario("rows and journal restored", restore="timeline", shared_journal=True, splits_sign=False),
    Scenario("reopened", restore="timeline", reopen=True, splits_sign=False),
    Scenario(
        "reopened without the journal", restore="timeline", shared_journal=True, reopen=True, workers=1, reorg=True
    ),
    Scenario("reopened, a wrong word", restore="timeline", reopen=True, wrong_word=True, splits_sign=False),
    Scenario("deep reorg", deep=True, cancel=1, workers=1, reorg=True, bump=True, splits_sign=False),
    Scenario("deep reorg, foreign use", deep=True, foreign=True, workers=1, reorg=True, splits_sign=False),
    Scenario("reconcile beside a takeover", splits_reconcile=True, reorg=True, splits_sign=False),
    Scenario(
        "reconcile, bump, foreign use",
        (1,),
        splits_reconcile=True,
        bump=True,
        foreign=True,
        reorg=True,
        splits_sign=False,
    ),
)
