"""Whether a switch fits the model of the output that it looks at."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Annotated, Literal, Union

from pydantic import BaseModel

from pi_workflows.authoring.nodes import AnyNode
from pi_workflows.base.errors import Problem
from pi_workflows.definition.selector import case_text, parse_selector
from pi_workflows.definition.snapshot import Edge


def case_problems(nodes: Mapping[str, AnyNode], edges: Iterable[Edge]) -> Iterator[Problem]:
    """Yield where a switch does not fit the output model: an unknown field, or cases not its own.

    Only what the model proves is reported: the cases of a field are compared when its type is made
    of `Literal`, `bool`, `None` and enumerations, and nothing is said about models with
    serializers, computed or extra fields.
    """
    for edge in edges:
        node = nodes.get(edge.source)
        selector = parse_selector(edge.on) if edge.on is not None else None
        if node is None or node.output is None or selector is None or selector.source == "result":
            continue
        where = f"edges.{edge.source}"
        annotation: object = node.output.model
        for member in selector.path:
            model = _plain_model(annotation)
            if model is None:
                break
            field = model.model_fields.get(member)
            if field is None:
                near = difflib.get_close_matches(member, model.model_fields, n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                yield Problem(
                    "switchFieldUnknown",
                    where,
                    f"on={edge.on!r}: {model.__name__} has no field {member!r}{hint}",
                )
                break
            annotation = field.annotation
        else:
            yield from _fit(where, edge, _texts(annotation))


def _fit(where: str, edge: Edge, texts: frozenset[str] | None) -> Iterator[Problem]:
    if texts is None or edge.cases is None:
        return
    for case in edge.cases:
        if case not in texts:
            yield Problem(
                "switchCaseImpossible",
                where,
                f"case {case!r}: {edge.on} is one of {', '.join(sorted(texts))}",
            )
    missing = sorted(texts - edge.cases.keys())
    if missing:
        yield Problem(
            "switchCaseMissing",
            where,
            f"{edge.on} may also be {', '.join(missing)}: add a case for each",
        )


def _plain_model(annotation: object) -> type[BaseModel] | None:
    """Return the model whose JSON has exactly its fields, under their names."""
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return None
    decorators = annotation.__pydantic_decorators__
    config = annotation.model_config
    if (
        decorators.field_serializers
        or decorators.model_serializers
        or decorators.computed_fields
        or config.get("serialize_by_alias")
        or config.get("extra") == "allow"
    ):
        return None
    return annotation


def _texts(annotation: object) -> frozenset[str] | None:
    """Return every text that a value of the type compares as, or None when they are not listed."""
    if annotation is bool:
        return frozenset({"true", "false"})
    if annotation is None or annotation is type(None):
        return frozenset({"null"})
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _literal_texts([member.value for member in annotation])
    origin = typing.get_origin(annotation)
    arguments: tuple[object, ...] = typing.get_args(annotation)
    if origin is Literal:
        return _literal_texts(arguments)
    if origin is Annotated:
        return _texts(arguments[0])
    if origin is Union or origin is types.UnionType:
        parts = [_texts(argument) for argument in arguments]
        known = [part for part in parts if part is not None]
        return frozenset[str]().union(*known) if len(known) == len(parts) else None
    return None


def _literal_texts(values: Iterable[object]) -> frozenset[str] | None:
    texts: set[str] = set()
    for value in values:
        plain: object = value.value if isinstance(value, Enum) else value
        if not isinstance(plain, bool | int | float | str | None):
            return None
        texts.add(case_text(plain))
    return frozenset(texts)
