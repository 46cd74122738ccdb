"""`pi-workflows.progress.v1`: how far a piece of work is, whoever reports it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel


class Progress(BaseModel):
    """How far a piece of work is: `pi-workflows.progress.v1`.

    Attributes:
        status: `pending`, `running`, `waiting`, `blocked`, `completed`, `failed`, `cancelled` or
            `unknown`.
        label: What the work is, at most 200 characters.
        phase: The part of it that runs now, at most 128 characters.
        completed: How many units are done, 0 or more.
        total: How many units there are, more than 0 and not below `completed`.
        unit: What is counted, 1-32 characters; required with `completed` or `total`.
        source_updated_at: When the source of these figures wrote them.
        source_estimated_finish_at: When that source expects to be done.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )

    schema_id: Literal["pi-workflows.progress.v1"] = Field(
        default="pi-workflows.progress.v1", validation_alias="schema", serialization_alias="schema"
    )
    status: Literal[
        "pending", "running", "waiting", "blocked", "completed", "failed", "cancelled", "unknown"
    ] = "running"
    label: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    phase: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    completed: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    total: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    unit: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    source_updated_at: AwareDatetime | None = None
    source_estimated_finish_at: AwareDatetime | None = None

    @model_validator(mode="after")
    def _counts_fit(self) -> Progress:
        if self.unit is None and (self.completed is not None or self.total is not None):
            message = "unit is required with completed or total"
            raise ValueError(message)
        if self.total is not None and (self.completed or 0) > self.total:
            message = "completed may not be over total"
            raise ValueError(message)
        return self
