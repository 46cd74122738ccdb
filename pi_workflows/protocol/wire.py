"""What every model on the wire has in common: strict, frozen, camelCase, no member unknown.

- An optional member has the type `Maybe[X]` and the default None, which leaves it out. On the wire
  it is omitted, never null.
- A member that may be null has the type `X | None` and no default, and is always written.
- A value of any JSON has the type `AnyJson` and is passed through untouched, so that stored bytes
  may stand in it as `canonical.fragment`. With the default None it is left out unless it was given:
  null is a value too.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Self, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import (
    ENVELOPE_ID_BYTES_MAX,
    ERROR_CHARS_MAX,
    FIELD_CHARS_MAX,
    PATH_BYTES_MAX,
    REVISION_MAX,
    RUN_ID_CHARS_MAX,
)

T = TypeVar("T")

# Tells validators that a value came from the wire: there nothing optional is null.
_FROM_WIRE: Final = {"wire": True}
_SCALARS: Final = frozenset({str, int, bool})
_UTF8_BYTES_PER_CHAR_MAX: Final = 4


def _identity(value: str) -> str:
    """Refuse text that is empty or over the bytes of an identity."""
    if 0 < len(value) <= ENVELOPE_ID_BYTES_MAX // _UTF8_BYTES_PER_CHAR_MAX:
        return value
    if not value:
        raise PydanticCustomError("id_empty", "must not be empty")
    if len(canonical.utf8(value)) > ENVELOPE_ID_BYTES_MAX:
        limit = {"limit": ENVELOPE_ID_BYTES_MAX}
        raise PydanticCustomError("id_long", "must be at most {limit} bytes of UTF-8", limit)
    return value


def _absolute_path(value: str) -> str:
    """Refuse a path that is relative, not normalized, or one that no system call would take."""
    is_normal = posixpath.normpath(value) == value and not value.startswith("//")
    if not value.startswith("/") or not is_normal or "\0" in value:
        raise PydanticCustomError("path", "must be an absolute, normalized path")
    if len(canonical.utf8(value)) > PATH_BYTES_MAX:
        limit = {"limit": PATH_BYTES_MAX}
        raise PydanticCustomError("path_long", "must be at most {limit} bytes", limit)
    return value


def _present(value: object, info: ValidationInfo) -> object:
    """Refuse null for an optional member that came from the wire."""
    if value is None and info.context is _FROM_WIRE:
        raise PydanticCustomError("null", "must be left out instead of null")
    return value


if TYPE_CHECKING:
    AnyJson: TypeAlias = Json
    JsonObject: TypeAlias = dict[str, Json]
else:
    # The frame decoder has checked these values, and pydantic could not follow the recursive type
    # anyway: it passes them through. Stored bytes may stand in them as `canonical.fragment`.
    AnyJson = object
    JsonObject = dict[str, object]

Id: TypeAlias = Annotated[str, AfterValidator(_identity)]
"""Nonempty text of at most 256 bytes of UTF-8."""

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
"""Nonempty text, bounded by its frame."""

Count: TypeAlias = Annotated[int, Field(ge=0, le=REVISION_MAX)]
"""An integer from 0 to 2^53-1: a revision, a number, a duration in its unit, a size in bytes."""

Revision: TypeAlias = Count
"""A revision of a resource or of a presentation."""

Number: TypeAlias = Annotated[int, Field(ge=1, le=REVISION_MAX)]
"""An integer from 1 to 2^53-1: a visit, an attempt, a generation."""

Sha256: TypeAlias = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
"""A digest as 64 lower-case hex digits."""

DefinitionDigest: TypeAlias = Annotated[str, StringConstraints(pattern="^sha256:[0-9a-f]{64}$")]
"""The digest of a definition snapshot, with the name of its algorithm."""

AbsolutePath: TypeAlias = Annotated[str, AfterValidator(_absolute_path)]
"""An absolute, normalized path of at most 4,096 bytes."""

Maybe: TypeAlias = Annotated[T | None, BeforeValidator(_present)]
"""An optional member: give it the default None. On the wire it is omitted, never null."""

Many: TypeAlias = Annotated[tuple[T, ...], Strict(strict=False)]
"""A JSON array of models or scalars."""


class WireModel(BaseModel):
    """A frozen JSON object whose members are all known.

    Attributes are snake_case, members camelCase.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )

    @classmethod
    def parse(cls, value: Json, *, field: str | None = None) -> Self:
        """Read the model from a decoded JSON value.

        Args:
            value: What `canonical.decode` gave.
            field: What people call the value itself, for errors that no member is at fault for.

        Returns:
            The model.

        Raises:
            PayloadInvalid: With the path of the first member at fault.
        """
        with _refusing(field):
            return cls.model_validate(value, by_alias=True, by_name=False, context=_FROM_WIRE)

    def document(self) -> dict[str, Json]:
        """Return the JSON object, ready for `canonical.encode`; values of any JSON are shared."""
        return _document(self)


def _document(model: BaseModel) -> dict[str, Json]:
    """Return a model as a JSON object."""
    found: dict[str, Json] = {}
    values: Mapping[str, object] = model.__dict__
    for name, alias, omission in _members(type(model)):
        value = values[name]
        if value is not None or _is_kept(name, omission, model):
            found[alias] = _json(value)
    return found


class _Omission(Enum):
    """When a member is left out."""

    NEVER = auto()
    WHEN_NONE = auto()
    WHEN_NOT_GIVEN = auto()


@cache
def _members(model: type[BaseModel]) -> tuple[tuple[str, str, _Omission], ...]:
    """Return each field's attribute, its member name, and when it is left out."""
    return tuple(
        (name, info.alias or to_camel(name), _omission(info))
        for name, info in model.model_fields.items()
    )


def _is_kept(name: str, omission: _Omission, model: BaseModel) -> bool:
    """Say whether a member that is None stands in the document, as null."""
    if omission is _Omission.WHEN_NOT_GIVEN:
        return name in model.model_fields_set
    return omission is _Omission.NEVER


def _omission(info: FieldInfo) -> _Omission:
    """Say when a field is left out, by its default and type."""
    if info.is_required() or info.default is not None:
        return _Omission.NEVER
    is_maybe = any(isinstance(part, BeforeValidator) for part in info.metadata)
    return _Omission.WHEN_NONE if is_maybe else _Omission.WHEN_NOT_GIVEN


def _json(value: object) -> Json:
    """Return the JSON form of an attribute. Typed sequences are tuples; a list is JSON already."""
    if type(value) in _SCALARS:
        return cast("Json", value)
    if isinstance(value, BaseModel):
        return _document(value)
    if isinstance(value, tuple):
        return [_json(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, Enum):
        return cast("str", value.value)
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {name: _json(member) for name, member in members.items()}
    return cast("Json", value)


@contextmanager
def _refusing(root: str | None = None) -> Generator[None]:
    """Turn a failed validation into PayloadInvalid.

    It names the first member at fault, or the root, and no content.
    """
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = _path(first["loc"]) or root
        message = f"{field}: {_reason(first)}" if field else _reason(first)
        raise PayloadInvalid(error_line(message), field=field) from None


def error_line(text: str) -> str:
    """Return text as the one line of at most 1,000 characters that may stand in a response."""
    line = " ".join(text.split())
    return line if len(line) <= ERROR_CHARS_MAX else f"{line[: ERROR_CHARS_MAX - 1]}…"


def _path(location: Sequence[int | str]) -> str:
    """Write the place of an error as people do: `commands[2].nodePath`."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    path = path.removeprefix(".")
    return path if len(path) <= FIELD_CHARS_MAX else f"{path[: FIELD_CHARS_MAX - 1]}…"


def _reason(error: ErrorDetails) -> str:
    """Say in a few words what is wrong with a member."""
    match error["type"]:
        case "extra_forbidden":
            return "unknown field"
        case "missing":
            return "is required"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "must be an object"
        case "tuple_type":
            return "must be an array"
        case "string_too_short" | "too_short":
            return "must not be empty"
        case "string_too_long":
            return f"must be at most {error.get('ctx', {})['max_length']} characters"
        case _:
            return re.sub("^(Input|String) should", "must", error["msg"])


_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_run_id(text: str) -> bool:
    """Say whether text may name a new run (the engine's limits, "run ID")."""
    return len(text) <= RUN_ID_CHARS_MAX and _RUN_ID.fullmatch(text) is not None


class Payload(WireModel):
    """The payload of an operation."""


class NoPayload(Payload):
    """The payload of an operation that needs nothing beside its envelope: `{}`."""


class SessionPayload(Payload):
    """The payload of an operation for which a session may ask, by its ID and its coordinator epoch.

    Without the two it is a control request.
    """

    target_session_id: Maybe[Id] = None
    coordinator_epoch: Maybe[Number] = None

    @model_validator(mode="after")
    def _names_both_or_neither(self) -> Self:
        """A session proves itself by its epoch: one without the other means nothing."""
        if (self.target_session_id is None) != (self.coordinator_epoch is None):
            reason = "targetSessionId and coordinatorEpoch go together"
            raise PydanticCustomError("session_half", reason)
        return self

    @property
    def claims_session(self) -> bool:
        """Whether the request is a session's.

        The connection must then hold that session's epoch.
        """
        return self.target_session_id is not None
