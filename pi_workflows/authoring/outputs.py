"""The declared type of a node's output or a checkpoint's answer, and the way between it and JSON."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Problem, ProblemsFound


@dataclass(frozen=True, slots=True)
class OutputModel:
    """A type that outputs must fit.

    Attributes:
        name: Its qualified name, the part of it that the definition digest covers.
        adapter: pydantic's validator and serializer for it.
        model: The model itself, when the type is one and not a list of them or the like.
    """

    name: str
    # The type is the author's; only `Node` knows it statically.
    adapter: TypeAdapter[Any]
    model: type[BaseModel] | None = None

    @classmethod
    def of(cls, declared: type[BaseModel]) -> OutputModel:
        """Return the output model of a pydantic model."""
        return cls(
            f"{declared.__module__}.{declared.__qualname__}", TypeAdapter(declared), declared
        )

    def json(self, value: object, *, field: str) -> Json:
        """Return what an author's function returned, checked, as JSON.

        Raises:
            ProblemsFound: The value does not fit (`outputInvalid`); each problem names the path below `field`.
        """
        try:
            checked = self.adapter.validate_python(value, by_alias=True, by_name=True)
        except ValidationError as error:
            raise ProblemsFound(
                validation_problems(error, field=field, code="outputInvalid"), code="outputInvalid"
            ) from None
        return cast("Json", self.adapter.dump_python(checked, mode="json"))

    def value(self, stored: Json, *, field: str, code: str = "outputInvalid") -> object:
        """Return a JSON value as an instance of the type.

        Raises:
            ProblemsFound: The value does not fit; each problem names the path below `field`.
        """
        content = canonical.encode(stored, field=field)
        try:
            return cast("object", self.adapter.validate_json(content, by_alias=True, by_name=True))
        except ValidationError as error:
            raise ProblemsFound(
                validation_problems(error, field=field, code=code), code=code
            ) from None


def validation_problems(error: ValidationError, *, field: str, code: str) -> list[Problem]:
    """Return pydantic's complaints as problems: the path to each part, and what is wrong there."""
    return [
        Problem(code, _place(field, detail["loc"]), detail["msg"])
        for detail in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _place(field: str, location: tuple[int | str, ...]) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return f"{field}{steps}"


def returned_model(function: Callable[..., object]) -> OutputModel | None:
    """Return the output model that a function's return annotation declares.

    Args:
        function: A node's function. Only its own `return` annotation is read, never that of a lambda.

    Returns:
        The model when the annotation is, or holds, a pydantic model or a dataclass; None for plain JSON types and for
        annotations that cannot be resolved at run time, which hold no type that the function could construct.
    """
    target = inspect.unwrap(function)
    annotation: object = getattr(target, "__annotations__", {}).get("return")
    holder = SimpleNamespace(__annotations__={"return": annotation})
    try:
        hints = typing.get_type_hints(holder, globalns=getattr(target, "__globals__", {}))
    except (NameError, TypeError, AttributeError, SyntaxError):
        return None
    resolved: object = hints.get("return")
    if not _holds_model(resolved):
        return None
    if isinstance(resolved, type) and issubclass(resolved, BaseModel):
        return OutputModel.of(resolved)
    try:
        return OutputModel(_type_name(resolved), TypeAdapter(cast("type[object]", resolved)))
    except PydanticUserError:
        return None


def _holds_model(annotation: object) -> bool:
    if isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)
    ):
        return True
    return any(_holds_model(argument) for argument in typing.get_args(annotation))


def _type_name(annotation: object) -> str:
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return f"{annotation.__module__}.{annotation.__qualname__}"
    return str(annotation)
