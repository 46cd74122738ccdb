"""An answer's schema as fields that a person fills in one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.outline import value_line

_FIELDS_MAX: Final = 12
_YES: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_TYPES: Final = frozenset({"string", "integer", "number", "boolean"})
_DEFAULT_CHARS_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Field:
    """One member of the answer.

    Attributes:
        name: The member.
        type: `string`, `integer`, `number` or `boolean`.
        choices: The only values; empty when any value of the type will do.
        description: What the author says about it.
        is_required: Whether it has no default.
        default: The default's text, where there is one to tell.
    """

    name: str
    type: str
    choices: tuple[Json, ...]
    description: str
    is_required: bool
    default: str

    @classmethod
    def of(cls, name: str, schema: Json, *, is_required: bool) -> Self | None:
        """Return the field of a member; None when one line is not enough to type it."""
        if not isinstance(schema, dict):
            return None
        schema = {**schema, **_present(schema)}
        choices = schema.get("enum")
        if choices is None and "const" in schema:
            choices = [schema["const"]]
        kind = schema.get("type")
        if kind not in _TYPES and not isinstance(choices, list):
            return None
        description = schema.get("description")
        default = schema.get("default")
        return cls(
            name=name,
            type=str(kind),
            choices=tuple(choices) if isinstance(choices, list) else (),
            description=description if isinstance(description, str) else "",
            is_required=is_required,
            default=""
            if default in (None, "")
            else value_line(default, chars_max=_DEFAULT_CHARS_MAX),
        )

    def prompt(self) -> str:
        """Return what stands before the cursor."""
        return f"  {self.name} ({self._form()})"

    def described(self) -> str:
        """Return the field in one line that is safe to show."""
        text = f"{self.name}: {self._form()}"
        return escaped(f"{text}. {self.description}" if self.description else text)

    def _form(self) -> str:
        """Return what may be typed."""
        if self.choices:
            form = " or ".join(_text(choice) for choice in self.choices)
        else:
            form = {"string": "text", "boolean": "yes or no"}.get(self.type, self.type)
        if self.is_required:
            return form
        return f"{form}, by default {self.default}" if self.default else f"{form}, optional"

    def example(self) -> Json:
        """Return a value that may stand here."""
        if self.choices:
            return self.choices[0]
        return {"integer": 1, "number": 1, "boolean": True}.get(self.type, "…")

    def read(self, typed: str) -> Json:
        """Return what a line means.

        Args:
            typed: The line, not empty.

        Raises:
            PayloadInvalid: It means nothing here.
        """
        if self.choices:
            return self._choice(typed)
        if self.type == "string":
            return typed
        if self.type == "boolean":
            if typed.lower() in _YES:
                return _YES[typed.lower()]
            raise PayloadInvalid(f"{self.name}: answer yes or no")
        try:
            value = canonical.decode(typed.encode())
        except PayloadInvalid:
            value = None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PayloadInvalid(f"{self.name}: type a number")
        return value

    def _choice(self, typed: str) -> Json:
        """Return the one choice that begins so."""
        near = [choice for choice in self.choices if _text(choice).startswith(typed)]
        exact = [choice for choice in near if _text(choice) == typed]
        found = exact or near
        if len(found) != 1:
            listed = ", ".join(_text(choice) for choice in self.choices)
            raise PayloadInvalid(f"{self.name}: choose one of {listed}")
        return found[0]


def fields_of(schema: Json) -> tuple[Field, ...] | None:
    """Return the fields of an answer.

    Args:
        schema: The answer's JSON schema.

    Returns:
        The required fields first, then the others; None when the answer is no flat object of a few
        members, and has to be typed as a whole.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not 0 < len(properties) <= _FIELDS_MAX:
        return None
    needed = (
        [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    )
    ordered = [name for name in needed if name in properties]
    ordered += [name for name in properties if name not in ordered]
    fields = [Field.of(name, properties[name], is_required=name in needed) for name in ordered]
    found = tuple(field for field in fields if field is not None)
    return found if len(found) == len(fields) else None


def _present(schema: dict[str, Json]) -> dict[str, Json]:
    """Return the form of a member that may also be null; nothing when it has one form only."""
    forms = schema.get("anyOf")
    if not isinstance(forms, list):
        return {}
    real = [form for form in forms if isinstance(form, dict) and form.get("type") != "null"]
    return real[0] if len(real) == 1 and len(forms) == len(real) + 1 else {}


def _text(choice: Json) -> str:
    """Return a choice as it is typed."""
    return choice if isinstance(choice, str) else canonical.encode(choice).decode()
