"""Identifiers: the derived ones, which two processes compute alike, and the random ones."""

from __future__ import annotations

import hashlib
import secrets

_DERIVED_HEX = 40
_TOKEN_BYTES = 32
# As many as a 64-bit number has at most.
_REVISION_DIGITS = 19


def _derived(prefix: str, *parts: str) -> str:
    """Return the prefix and the first 40 hex digits of SHA-256 over the parts, joined by NUL."""
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"{prefix}-{digest[:_DERIVED_HEX]}"


def resource_id(resource_type: str, aggregate_key: str) -> str:
    """Return the identity of the resource that carries an aggregate's revision and lease."""
    return _derived(resource_type, resource_type, aggregate_key)


def attempt_id(run_id: str, node_path: str, attempt_number: int) -> str:
    """Return the identity of one attempt; runner and server compute it alike.

    Runner protocol, "Identity".
    """
    return _derived("attempt", run_id, node_path, str(attempt_number))


def effect_id(source_resource_id: str, effect_type: str, key: str) -> str:
    """Return the identity of the effect that a source may have once under this type and key."""
    return _derived("effect", source_resource_id, effect_type, key)


def request_id(run_id: str, attempt: str) -> str:
    """Return the identity of the one request that an attempt may have.

    Engine contract, section 3.
    """
    return _derived("request", run_id, attempt)


def decision_id(run_id: str, attempt: str) -> str:
    """Return the identity of the one decision that an attempt may ask for."""
    return _derived("decision", run_id, attempt)


def policy_submission_id(decision: str) -> str:
    """Return the identity of the answer that a decision's default is at its deadline."""
    return _derived("submission", decision, "timeout_policy")


def settings_scope_id(run_id: str, mount_path: str, invocation: int) -> str:
    """Return the identity of a workflow's settings in one of its invocations.

    Engine contract, section 4; runner and server compute it alike.
    """
    return f"{run_id}:{mount_path or '$root'}:{invocation}"


def settings_change_id(scope_id: str, change_number: int) -> str:
    """Return the identity of the one change of this number that a scope may have."""
    return _derived("change", scope_id, str(change_number))


def client_request_id(client_id: str, idempotency_key: str) -> str:
    """Return the name under which what a client asks for once is kept in its own row."""
    return _derived("asked", client_id, idempotency_key)


def follow_up_id(run_id: str, request: str) -> str:
    """Return the identity of the one follow-up that a request may queue after a run."""
    return _derived("follow-up", run_id, request)


def message_id(kind: str, source_id: str, key: str) -> str:
    """Return the identity of the message that a source may have once under a key.

    State contract, section 1.10.
    """
    return _derived("message", kind, source_id, key)


def segment_id(run_id: str, capture_key: str | None) -> str:
    """Return the identity of a captured stretch of a session.

    A run has one without a key, and one under each key.
    """
    parts = (run_id,) if capture_key is None else (run_id, capture_key)
    return _derived("segment", *parts)


def event_id(resource: str, revision: int) -> str:
    """Return the identity of the one event that gave a resource this revision.

    It sorts as the revisions do, so that a resource's next event lands beside its last one.
    """
    return f"event-{resource}-{revision:0{_REVISION_DIGITS}d}"


def project_id(canonical_path: str) -> str:
    """Return the identity of a project directory."""
    return _derived("project", canonical_path)


def random_id(prefix: str) -> str:
    """Return an identity that no one else has: the prefix and 32 random hex digits."""
    return f"{prefix}-{secrets.token_hex(16)}"


def random_token() -> bytes:
    """Return 32 random bytes that prove a claim; they stay in the server's memory."""
    return secrets.token_bytes(_TOKEN_BYTES)
