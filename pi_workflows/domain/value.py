"""Values that are read as JSON, whoever sent them."""

from __future__ import annotations

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import PayloadInvalid


def require_json(field: str, blob: Blob | None) -> None:
    """Refuse a value whose column is read as JSON and that comes as text.

    Raises PayloadInvalid `notJson`.
    """
    if blob is not None and blob.media_type != "application/json":
        raise PayloadInvalid(f"{field}: {blob.media_type} is not JSON", code="notJson", field=field)
