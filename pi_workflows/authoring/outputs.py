"""The type of a node's output or a checkpoint's answer, and the way between it and JSON."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, Literal, Union, cast

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from pi_workflows.authoring.failures import bounded
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Problem, ProblemsFound
from pi_workflows.base.limits import ERROR_CHARS_MAX, FIELD_CHARS_MAX


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
            ProblemsFound: The value does not fit (`outputInvalid`); each problem names the path
                below `field`.
        """
        try:
            checked = self.adapter.validate_python(value, by_alias=True, by_name=True)
        except ValidationError as error:
            raise ProblemsFound(
                validation_problems(error, field=field, code="outputInvalid"), code="outputInvalid"
            ) from None
        return cast("Json", self.adapter.dump_python(checked, mode="json"))

    def value(self, stored: Json, *, field: str) -> object:
        """Return a stored value as an instance of the type.

        Raises:
            ProblemsFound: The value does not fit (`outputInvalid`); each problem names the path
                below `field`.
        """
        return self._instance(stored, field=field, code="outputInvalid", extra=None)

    def accept(self, candidate: Json, *, field: str, code: str) -> object:
        """Return a value that a person wrote as an instance of the type.

        Members that no model of the type knows are refused, as typing mistakes would otherwise be
        dropped silently; a model that says `extra="allow"` or `extra="ignore"` is left to do so.

        Raises:
            ProblemsFound: The value does not fit (`code`); each problem names the path below
                `field`.
        """
        return self._instance(
            candidate, field=field, code=code, extra=None if self._is_lenient else "forbid"
        )

    def _instance(
        self, value: Json, *, field: str, code: str, extra: Literal["forbid"] | None
    ) -> object:
        content = canonical.encode(value, field=field)
        try:
            instance: object = self.adapter.validate_json(
                content, by_alias=True, by_name=True, extra=extra
            )
        except ValidationError as error:
            raise ProblemsFound(
                validation_problems(error, field=field, code=code), code=code
            ) from None
        return instance

    @property
    def _is_lenient(self) -> bool:
        return _allows_extra(self.adapter.core_schema)


def _allows_extra(schema: object) -> bool:
    """Return whether a model of the schema says what becomes of members that it does not know."""
    if isinstance(schema, Mapping):
        members = cast("Mapping[str, object]", schema)
        return any(
            members.get(name) in ("allow", "ignore")
            for name in ("extra_behavior", "extra_fields_behavior")
        ) or any(map(_allows_extra, members.values()))
    if isinstance(schema, list | tuple):
        return any(map(_allows_extra, cast("Iterable[object]", schema)))
    return False


def validation_problems(error: ValidationError, *, field: str, code: str) -> list[Problem]:
    """Return pydantic's complaints as problems: the path to each part, and what is wrong there."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return bounded(
        Problem(code, _place(field, detail["loc"]), _reason(detail)) for detail in details
    )


def _place(field: str, location: tuple[int | str, ...]) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    place = f"{field}{steps}"
    return place if len(place) <= FIELD_CHARS_MAX else f"{place[: FIELD_CHARS_MAX - 1]}…"


def _reason(detail: ErrorDetails) -> str:
    """Say in one line what is wrong with a part of a value."""
    match detail["type"]:
        case "extra_forbidden":
            return "unknown field: remove it"
        case "missing":
            return "is required"
        case _:
            text = " ".join(detail["msg"].replace("Input should be", "must be", 1).split())
            return text if len(text) <= ERROR_CHARS_MAX else f"{text[: ERROR_CHARS_MAX - 1]}…"


def returned_model(function: Callable[..., object]) -> OutputModel | None:
    """Return the output model that a function's return annotation declares.

    Args:
        function: A node's function. Only its own `return` annotation is read, never that of a
            lambda.

    Returns:
        The model when the annotation is, or holds, a pydantic model or a dataclass; None for plain
        JSON types and for annotations that cannot be resolved at run time, which hold no type that
        the function could construct.
    """
    target = inspect.unwrap(function)
    annotation: object = getattr(target, "__annotations__", {}).get("return")
    holder = SimpleNamespace(__annotations__={"return": annotation})
    try:
        hints = typing.get_type_hints(
            holder, globalns=getattr(target, "__globals__", {}), include_extras=True
        )
    except (NameError, TypeError, AttributeError, SyntaxError):
        return None
    resolved = cast("object", hints.get("return"))
    if not _holds_model(resolved):
        return None
    if isinstance(resolved, type) and issubclass(resolved, BaseModel):
        return OutputModel.of(resolved)
    form = cast("type[object]", resolved)
    try:
        return OutputModel(_type_name(form), TypeAdapter(form))
    except PydanticUserError:
        return None


def _holds_model(annotation: object) -> bool:
    if isinstance(annotation, type) and _is_model(cast("type[object]", annotation)):
        return True
    return any(_holds_model(argument) for argument in typing.get_args(annotation))


def _is_model(kind: type[object]) -> bool:
    return issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind)


def _type_name(annotation: object) -> str:
    """Return a type's name from qualified names only: Python's own text of it changes."""
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Ellipsis:
        return "..."
    origin = cast("object", typing.get_origin(annotation))
    arguments: tuple[object, ...] = typing.get_args(annotation)
    if origin is Annotated:
        return _type_name(arguments[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    names = [_type_name(argument) for argument in arguments]
    if origin is Union or origin is types.UnionType:
        return " | ".join(names)
    kind = annotation if origin is None else origin
    if not isinstance(kind, type):
        return str(annotation)
    name = kind.__qualname__ if kind.__module__ == "builtins" else qualified_name(kind)
    return f"{name}[{', '.join(names)}]" if names else name


def qualified_name(kind: type[object]) -> str:
    """Return the module and name under which a type is known."""
    return f"{kind.__module__}.{kind.__qualname__}"
