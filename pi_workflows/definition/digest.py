"""The definition digest: what makes two definitions the same."""

from __future__ import annotations

import hashlib

from pi_workflows.base import canonical
from pi_workflows.definition.snapshot import Snapshot


def definition_digest(snapshot: Snapshot) -> str:
    """Return `sha256:` and the hex SHA-256 of the snapshot's canonical JSON.

    The rule is the engine contract's, section 1.1.
    """
    content = canonical.encode(snapshot.document(), field="definitionSnapshot")
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
