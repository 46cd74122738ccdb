"""Progress that a node reports while it works (the engine contract, "Updates")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded, PayloadInvalid
from pi_workflows.base.limits import UPDATE_DATA_BYTES_MAX
from pi_workflows.definition.progress import Progress

_TYPE: Final = re.compile(r"[a-z][a-z0-9.-]{0,63}")
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_KEY_CHARS_MAX: Final = 128


@dataclass(frozen=True, slots=True)
class Update:
    """An update of a type of the author's own.

    Attributes:
        type: `[a-z][a-z0-9.-]{0,63}`; `progress` belongs to `Progress`.
        data: A JSON object of at most 64 KiB that replaces the one before it.
    """

    type: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PublishedUpdate:
    """A checked update on its way to the server.

    Attributes:
        type: Its type.
        key: Its key.
        data: Its data, a copy of its own.
    """

    type: str
    key: str
    data: Json


def published(update: Progress | Update, *, key: str | None, node_path: str) -> PublishedUpdate:
    """Check an update and detach it from its author's objects.

    Args:
        update: What the author publishes.
        key: The author's key, or None for the node's own.
        node_path: The node that publishes.

    Returns:
        The checked copy.

    Raises:
        PayloadInvalid: The type, the key or the data is not allowed.
        LimitExceeded: The data is over 64 KiB.
    """
    if isinstance(update, Progress):
        update_type = "progress"
        data: object = update.model_dump(mode="json", by_alias=True, exclude_none=True)
    else:
        update_type, data = update.type, dict(update.data)
        if _TYPE.fullmatch(update_type) is None or update_type == "progress":
            message = (
                f"update type {update_type!r:.80}: use 1-64 lower-case letters, digits, '.' and"
                " '-', a letter first; 'progress' is published as Progress(...)"
            )
            raise PayloadInvalid(message, code="updateTypeInvalid", field="type")
    chosen = key if key is not None else f"node:{node_path}"[:_KEY_CHARS_MAX]
    if _KEY.fullmatch(chosen) is None:
        message = (
            f"update key {chosen!r:.80}: use 1-128 letters, digits, '.', '_', ':', '/' and '-',"
            " a letter or digit first"
        )
        raise PayloadInvalid(message, code="updateKeyInvalid", field="key")
    content = canonical.encode(cast("Json", data), field="update.data")
    if len(content) > UPDATE_DATA_BYTES_MAX:
        message = f"update data: {len(content):,} bytes; at most {UPDATE_DATA_BYTES_MAX:,}"
        raise LimitExceeded(message, code="updateTooLarge", field="data")
    return PublishedUpdate(update_type, chosen, canonical.decode(content))
