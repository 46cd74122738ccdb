"""Documents that were generated for viewers of a run.

They are derived from the rest of the database: no event tells them, a rebuild leaves them out, and
an older one gives way to a newer one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_workflows.base.limits import VIEW_DOCUMENTS_KEPT
from pi_workflows.base.sql import load

if TYPE_CHECKING:
    from pi_workflows.base.blob import Blob
    from pi_workflows.store.transaction import Transaction

_SQL = load(__package__, "view_content.sql")


def keep_document(transaction: Transaction, run_id: str, document: Blob, now_ms: int) -> None:
    """Store a generated document of a run; drop the oldest ones above the number that is kept.

    Of a run that is gone, and of a document that is there, nothing is written.

    Args:
        transaction: The open transaction.
        run_id: The run.
        document: The document.
        now_ms: Wall time, milliseconds.
    """
    inserted = transaction.execute(
        _SQL["keep"],
        run_id=run_id,
        content_hash=document.digest,
        media_type=document.media_type,
        byte_length=len(document.content),
        content=document.content,
        now_ms=now_ms,
    )
    if inserted:
        transaction.execute(_SQL["drop_older"], run_id=run_id, kept=VIEW_DOCUMENTS_KEPT)
