"""What a stored patch names, as it is read: what was written, and nothing that others wrote."""

from __future__ import annotations

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import STORED_PATCH_KEPT_BYTES_MAX
from pi_workflows.views.named import (
    Added,
    Member,
    Newest,
    Plain,
    Range,
    Total,
    named_member,
    named_newest,
    named_range,
    named_total,
    operations,
)


def test_names_are_read_as_they_are_written() -> None:
    """Each kind of name comes back; an operation that names nothing keeps its bytes."""
    plain: dict[str, Json] = {"op": "replace", "path": "/total", "value": {"$other": 1}}
    values = [named_member("/queue"), named_range("entries", 3, 5), named_newest(2), named_total()]
    added, newest, total = [{"op": "append", "path": "/x", "value": value} for value in values[1:]]
    patch = canonical.encode(
        [{"op": "add", "path": "/queue", "value": values[0]}, added, newest, total, plain]
    )
    assert operations(patch) == (
        Member("/queue", "/queue"),
        Added(added, Range("entries", 3, 5)),
        Newest(newest, 2),
        Total(total),
        Plain(canonical.encode(plain)),
    )


@pytest.mark.parametrize("length", [0, STORED_PATCH_KEPT_BYTES_MAX])
def test_a_long_patch_is_read_like_a_short_one(length: int) -> None:
    """Whether a patch is kept or not, the same operations come of the same bytes."""
    content = canonical.encode([{"op": "add", "path": "/" + "x" * length, "value": 1}])
    assert operations(content) == operations(bytes(bytearray(content)))
    assert (operations(content) is operations(content)) is (length == 0)


@pytest.mark.parametrize("patch", [b"{}", b"1", b"[1]", b"[[]]", b"null"])
def test_another_form_is_refused(patch: bytes) -> None:
    """A stored patch that is no list of operations was not written by us."""
    with pytest.raises(Corrupt):
        operations(patch)
