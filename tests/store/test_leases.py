"""Who may write now: a claim is compared fact by fact, and the first difference is the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pi_workflows.base.errors import ClaimLost, OwnershipLost
from pi_workflows.base.sql import Statement
from pi_workflows.store.leases import Claim, owned_claims
from pi_workflows.store.records import OwnedLease, Permit
from tests.store.bench import NOW_MS, add_resource, sha256

if TYPE_CHECKING:
    from pi_workflows.base.sql import SqlValue
    from pi_workflows.store.database import Store

TOKEN = b"t" * 32
CLAIM = OwnedLease("run-1", "host", "server-1", TOKEN, 3, NOW_MS, NOW_MS + 1000)
PERMIT = Permit("run-1", "host", "server-1", TOKEN, 3)
LEASE = Statement(
    "lease",
    """
    SELECT owner_type, owner_id, token_hash, generation, acquired_at, heartbeat_at, expires_at
    FROM leases WHERE resource_id = 'run-1'
    """,
)


@pytest.fixture
def claimed(store: Store) -> Store:
    """A store with one aggregate under a claim, and one under none."""
    with store.transaction() as transaction:
        add_resource(transaction, "run-1", generation=3)
        add_resource(transaction, "run-2")
        transaction.take_claim(CLAIM)
    return store


def lease(store: Store) -> tuple[SqlValue, ...]:
    """Return the columns of the claimed aggregate's lease."""
    with store.snapshot() as snapshot:
        row = snapshot.one(_row, LEASE)
    assert row is not None
    return row


def _row(*values: SqlValue) -> tuple[SqlValue, ...]:
    return values


def lost(store: Store, permit: Permit | None, now_ms: int, resource_id: str | None = None) -> str:
    """Return why a claim does not hold; empty when it does."""
    with store.transaction() as transaction:
        try:
            transaction.check_claim(permit, now_ms, resource_id=resource_id)
        except OwnershipLost as error:
            return error.reason_code
    return ""


def test_a_claim_that_holds_is_silent(claimed: Store) -> None:
    """The exact owner, token and generation may write until the millisecond of expiry."""
    assert lost(claimed, PERMIT, NOW_MS) == ""
    assert lost(claimed, PERMIT, NOW_MS + 999, "run-1") == ""


REASONS = [
    (None, NOW_MS, None, ClaimLost.MISSING_AUTHORITY),
    (PERMIT, NOW_MS, "run-2", ClaimLost.MISSING_AUTHORITY),
    (replace(PERMIT, resource_id="run-2"), NOW_MS, None, ClaimLost.MISSING_AUTHORITY),
    (replace(PERMIT, resource_id="run-9"), NOW_MS, None, ClaimLost.MISSING_AUTHORITY),
    (replace(PERMIT, owner_id="server-2"), NOW_MS, None, ClaimLost.OWNER_CHANGED),
    (replace(PERMIT, owner_type="system"), NOW_MS, None, ClaimLost.OWNER_CHANGED),
    (replace(PERMIT, token=b"u" * 32), NOW_MS, None, ClaimLost.TOKEN_CHANGED),
    (replace(PERMIT, generation=2), NOW_MS, None, ClaimLost.GENERATION_CHANGED),
    (PERMIT, NOW_MS + 1000, None, ClaimLost.EXPIRED),
    (PERMIT, NOW_MS + 9999, None, ClaimLost.EXPIRED),
]


@pytest.mark.parametrize(("permit", "now_ms", "resource_id", "reason"), REASONS)
def test_each_difference_has_its_reason(
    claimed: Store, permit: Permit | None, now_ms: int, resource_id: str | None, reason: ClaimLost
) -> None:
    """The five claim-lost reasons, row by row."""
    assert lost(claimed, permit, now_ms, resource_id) == reason


def test_the_first_reason_wins(claimed: Store) -> None:
    """When everything differs the reasons come in their order, each hiding the next."""
    late = NOW_MS + 5000
    wrong = Permit("run-1", "system", "other", b"u" * 32, 2)
    assert lost(claimed, wrong, late, "run-2") == "missingAuthority"
    assert lost(claimed, wrong, late) == "ownerChanged"
    assert lost(claimed, replace(PERMIT, token=b"u" * 32, generation=2), late) == "tokenChanged"
    assert lost(claimed, replace(PERMIT, generation=2), late) == "generationChanged"


def test_only_the_hash_of_a_token_is_stored(claimed: Store) -> None:
    """The row holds the SHA-256 of the token and not the token."""
    assert lease(claimed) == (
        "host", "server-1", sha256(TOKEN), 3, NOW_MS, NOW_MS, NOW_MS + 1000,
    )  # fmt: skip


def test_a_renewal_moves_the_end(claimed: Store) -> None:
    """Renewing moves heartbeat and expiry and nothing else."""
    with claimed.transaction() as transaction:
        transaction.renew_claim(PERMIT, NOW_MS + 2000, NOW_MS + 500)
    assert lease(claimed) == (
        "host", "server-1", sha256(TOKEN), 3, NOW_MS, NOW_MS + 500, NOW_MS + 2000,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("permit", "now_ms", "reason"),
    [(row[0], row[1], row[3]) for row in REASONS if row[0] is not None and row[2] is None],
)
def test_a_lost_claim_is_not_renewed(
    claimed: Store, permit: Permit, now_ms: int, reason: ClaimLost
) -> None:
    """An expired owner never renews itself, nor does any other; the lease stays as it was."""
    before = lease(claimed)
    with pytest.raises(OwnershipLost) as caught, claimed.transaction() as transaction:
        transaction.renew_claim(permit, now_ms + 5000, now_ms)
    assert caught.value.reason_code == reason
    assert lease(claimed) == before


def test_a_live_claim_is_not_taken(claimed: Store) -> None:
    """Taking a claim that another owner still holds is our bug; an expired one may be taken."""
    rival = replace(CLAIM, owner_id="server-2", token=b"r" * 32)
    with (
        pytest.raises(AssertionError, match="another owner"),
        claimed.transaction() as transaction,
    ):
        transaction.take_claim(replace(rival, acquired_at_ms=NOW_MS + 999))
    with claimed.transaction() as transaction:
        transaction.take_claim(
            replace(rival, acquired_at_ms=NOW_MS + 1000, expires_at_ms=NOW_MS + 2000)
        )
    assert lost(claimed, PERMIT, NOW_MS + 1000) == "ownerChanged"


def test_a_claim_needs_the_generation_of_its_event(claimed: Store) -> None:
    """The owner is written only under the generation that the event raised."""
    with claimed.transaction() as transaction, pytest.raises(AssertionError):
        transaction.take_claim(replace(CLAIM, resource_id="run-2", generation=1))


def test_a_release_keeps_the_generation(claimed: Store) -> None:
    """Releasing clears the six owner columns, once, and only for its own generation."""
    with claimed.transaction() as transaction:
        assert not transaction.release_claim("run-1", 2)
        assert transaction.release_claim("run-1", 3)
        assert not transaction.release_claim("run-1", 3)
    assert lease(claimed) == (None, None, None, 3, None, None, None)
    assert lost(claimed, PERMIT, NOW_MS) == "missingAuthority"


def test_owned_claims_are_listed(claimed: Store) -> None:
    """Every claim with an owner is listed, expired or not, without its secret."""
    with claimed.snapshot() as snapshot:
        assert owned_claims(snapshot) == [Claim("run-1", "host", "server-1", 3, NOW_MS + 1000)]
