"""Runs as the run list shows them."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.cli.run_view import Display


class RunListItem(BaseModel):
    """The members of a list item that are shown. Times are ms since the epoch."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel
    )

    run_id: str
    workflow_name: str
    run_title: str | None = None
    project_path: str | None = None
    created_at: int
    updated_at: int
    display: Display
    possibly_interrupted: bool = False

    @classmethod
    def parse(cls, document: Json) -> Self:
        """Read an item. Raises ProtocolViolation when it is none."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            where = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
            raise ProtocolViolation(f"The server sent a list item without {where}.") from None
