"""`pi-workflows.run-patch.v1`: what changed in a run view between two presentation revisions.

The client protocol, "Deltas". A frame holds the changes of whole revisions, in their order; what
people are told (`display`, `live`, `possiblyInterrupted`) comes whole with every frame.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from pi_workflows.protocol.wire import (
    AnyJson,
    Count,
    Id,
    JsonObject,
    Many,
    Number,
    Revision,
    WireModel,
)

TargetType: TypeAlias = Literal[
    "summary", "graph", "replay", "timeline", "conversation", "inspector"
]
"""Which part of a run view a delta is about."""

_NO_ARRAYS: Final = (dict, str, int, float, type(None))


class PatchOperation(WireModel):
    """One change at one place.

    Attributes:
        op: `add`, `replace` and `remove` are those of RFC 6902: `add` sets a member or inserts an
            item, the others need what they name. `append` pushes an array's items at the end of
            another.
        path: A JSON Pointer (RFC 6901) inside the delta's target.
        value: The new value; the items of `append`; `remove` has none.
    """

    op: Literal["add", "replace", "remove", "append"]
    path: str
    value: AnyJson = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        """Null is a value, so that a missing one differs from it."""
        if ("value" in self.model_fields_set) == (self.op == "remove"):
            raise PydanticCustomError("operation_value", "every operation but remove has a value")
        if self.op == "append" and isinstance(self.value, _NO_ARRAYS):
            raise PydanticCustomError("append_value", "must be an array")
        return self


class Delta(WireModel):
    """What one revision changed in one target.

    Attributes:
        revision: The presentation revision.
        index: The delta's place in it, from 0.
        target_type: The part of the run view.
        target_key: Which of it, or how, such as `trace:tail`.
        patch: The changes, in order.
    """

    revision: Number
    index: Count
    target_type: TargetType
    target_key: str
    patch: Many[PatchOperation]

    @property
    def target(self) -> str:
        """Type and key in one word, such as `timeline/trace:tail`."""
        return f"{self.target_type}/{self.target_key}"


class RunPatch(WireModel):
    """The payload of a `run_patch` event.

    Attributes:
        run_id: The run.
        from_revision: The presentation revision at which it applies.
        to_revision: The one that it leads to; the same when only what people are told changed.
        display: As in the run view.
        live: As in the run view.
        possibly_interrupted: As in the run view.
        deltas: By revision and index, without a gap.
    """

    schema_id: Annotated[Literal["pi-workflows.run-patch.v1"], Field(alias="schema")] = (
        "pi-workflows.run-patch.v1"
    )
    run_id: Id
    from_revision: Revision
    to_revision: Revision
    display: JsonObject
    live: bool
    possibly_interrupted: bool
    deltas: Many[Delta]
