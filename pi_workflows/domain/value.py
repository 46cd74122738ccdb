"""Values that are read as JSON, whoever sent them."""

from __future__ import annotations

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import PayloadInvalid


def require_json(field: str, blob: Blob | None) -> None:
    """Refuse a value whose column is read as JSON and that comes as text.

    Raises PayloadInvalid `notJson`.
    """
    if blob is not None and blob.media_type != "application/json":
        raise PayloadInvalid(f"{field}: {blob.media_type} is not JSON", code="notJson", field=field)


def as_text(blob: Blob, *, field: str) -> Blob:
    """Return a text that comes as JSON as the text itself, which is how people's texts are kept.

    Raises PayloadInvalid `notText`.
    """
    require_json(field, blob)
    text = canonical.decode(blob.content, field=field)
    if not isinstance(text, str) or not text:
        raise PayloadInvalid(f"{field}: it is no text", code="notText", field=field)
    return Blob.text(text)
