"""Leases: whether a claim still holds, and the owner columns that say whose it is.

The generation is an event's business; owner, token and times belong to live processes and are no
part of a rebuild. A token is compared by its SHA-256 and never stored or logged.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from pi_workflows.base.errors import ClaimLost, OwnershipLost
from pi_workflows.base.sql import load

if TYPE_CHECKING:
    from pi_workflows.base.sql import Read
    from pi_workflows.store.cursors import Cursors
    from pi_workflows.store.records import OwnedLease, Permit

_SQL = load(__package__, "leases.sql")
_LEASE = _SQL["lease"]
_RENEW = _SQL["renew"]
_TAKE = _SQL["take"]
_RELEASE = _SQL["release"]
_OWNED = _SQL["owned"]
_EPOCH = _SQL["epoch"]

_EXPLANATIONS: Final = {
    ClaimLost.MISSING_AUTHORITY: "There is no claim on this to write under.",
    ClaimLost.OWNER_CHANGED: "Another owner holds the claim now.",
    ClaimLost.TOKEN_CHANGED: "The same owner claimed it again.",
    ClaimLost.GENERATION_CHANGED: "The claim is of an earlier generation.",
    ClaimLost.EXPIRED: "The claim has expired.",
}


class Claim(NamedTuple):
    """A claim as it stands, without its secret; `expires_at_ms` may have passed."""

    resource_id: str
    owner_type: str
    owner_id: str
    generation: int
    expires_at_ms: int


class _Lease(NamedTuple):
    owner_type: str | None
    owner_id: str | None
    token_hash: bytes | None
    generation: int
    expires_at_ms: int | None


def check_claim(
    cursors: Cursors, permit: Permit | None, now_ms: int, resource_id: str | None
) -> None:
    """Refuse a write whose claim does not hold.

    The reasons are tested in the order of `ClaimLost`; the first that matches is the answer (the
    state contract, section 3, "Claim-lost reasons").

    Args:
        cursors: The open transaction.
        permit: What the writer believes that it holds; None when it shows no claim.
        now_ms: The command's wall time.
        resource_id: The aggregate that is written; the permit's own when None.

    Raises:
        OwnershipLost: The claim does not hold; its code is the reason.
    """
    reason = _claim_lost(cursors, permit, now_ms, resource_id)
    if reason is not None:
        raise OwnershipLost(_EXPLANATIONS[reason], code=reason)


def _claim_lost(
    cursors: Cursors, permit: Permit | None, now_ms: int, resource_id: str | None
) -> ClaimLost | None:
    """Return why a claim does not hold, or None when it does."""
    if permit is None or resource_id not in {None, permit.resource_id}:
        return ClaimLost.MISSING_AUTHORITY
    rows = cursors.rows(_LEASE, {"resource_id": permit.resource_id})
    lease = _Lease._make(rows[0]) if rows else None
    if lease is None or lease.owner_type is None or lease.expires_at_ms is None:
        return ClaimLost.MISSING_AUTHORITY
    reason = None
    if (lease.owner_type, lease.owner_id) != (permit.owner_type, permit.owner_id):
        reason = ClaimLost.OWNER_CHANGED
    elif lease.token_hash != token_hash(permit.token):
        reason = ClaimLost.TOKEN_CHANGED
    elif lease.generation != permit.generation:
        reason = ClaimLost.GENERATION_CHANGED
    elif lease.expires_at_ms <= now_ms:
        reason = ClaimLost.EXPIRED
    return reason


def renew_claim(cursors: Cursors, permit: Permit, expires_at_ms: int, now_ms: int) -> None:
    """Move the end of a claim that still holds; no event, no revision.

    Args:
        cursors: The open transaction.
        permit: The claim.
        expires_at_ms: Its new end.
        now_ms: The command's wall time.

    Raises:
        OwnershipLost: As `check_claim`; nothing was renewed.
    """
    changed = cursors.change(
        _RENEW,
        {
            "resource_id": permit.resource_id,
            "owner_type": permit.owner_type,
            "owner_id": permit.owner_id,
            "token_hash": token_hash(permit.token),
            "generation": permit.generation,
            "expires_at": expires_at_ms,
            "now_ms": now_ms,
        },
    )
    if changed != 1:
        check_claim(cursors, permit, now_ms, None)
        raise AssertionError("a claim that holds was not renewed")


def take_claim(cursors: Cursors, claim: OwnedLease) -> None:
    """Write the owner of a claim whose event raised the generation already.

    Raises:
        AssertionError: Somebody else's claim has not expired, or the generation is another one.
    """
    changed = cursors.change(
        _TAKE,
        {
            "resource_id": claim.resource_id,
            "owner_type": claim.owner_type,
            "owner_id": claim.owner_id,
            "token_hash": token_hash(claim.token),
            "generation": claim.generation,
            "acquired_at": claim.acquired_at_ms,
            "expires_at": claim.expires_at_ms,
        },
    )
    assert changed == 1, f"{claim.resource_id}: a claim was taken that another owner holds"


def release_claim(cursors: Cursors, resource_id: str, generation: int) -> bool:
    """Clear the owner of a claim; the generation stays, and no one gets it again.

    Args:
        cursors: The open transaction.
        resource_id: The aggregate.
        generation: Of the claim that ends; a newer one is left alone.

    Returns:
        Whether there was such a claim, expired or not.
    """
    return cursors.change(_RELEASE, {"resource_id": resource_id, "generation": generation}) == 1


def owned_claims(read: Read) -> list[Claim]:
    """Return every claim that has an owner, expired ones included, by owner."""
    return read.all(Claim, _OWNED)


def check_epoch(cursors: Cursors, epoch: int) -> None:
    """Refuse to write for a server that is no longer the one.

    Raises:
        OwnershipLost: Another epoch is stored (`ownerChanged`).
    """
    ((stored,),) = cursors.rows(_EPOCH, {})
    if stored != epoch:
        raise OwnershipLost("Another server owns the database now.", code=ClaimLost.OWNER_CHANGED)


def token_hash(token: bytes) -> bytes:
    """Return what is stored of a token: its SHA-256."""
    return hashlib.sha256(token).digest()
