"""The identity under which one visit of a node applies its effect once."""

from __future__ import annotations

import hashlib


def effect_key(run_id: str, effect_type: str, node_path: str, visit: int) -> str:
    """Return the key of the effect that a visit may apply (the engine contract, section 6).

    Authors may send it to a provider as its idempotency key, so it is short ASCII whatever the type
    holds.

    Args:
        run_id: The run.
        effect_type: The declared type, such as `preview.deploy`.
        node_path: The full compiled path of the node.
        visit: Which entry of that path in this run, from 1.

    Returns:
        `piw-` and 64 hex digits.
    """
    assert visit > 0, visit
    source = "\0".join((run_id, effect_type, node_path, str(visit)))
    return f"piw-{hashlib.sha256(source.encode()).hexdigest()}"
