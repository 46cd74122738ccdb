"""Writes `docs/reference.md` from the code: `scripts/reference` prints it, a test compares it."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import Any, Final

import click
import typer

import pi_workflows
from pi_workflows.base import errors
from pi_workflows.base.errors import WorkflowsError
from pi_workflows.cli.app import app
from pi_workflows.domain.events import EVENTS
from pi_workflows.kernel.verify import CODES
from pi_workflows.protocol.operations import OPERATIONS

ROOT: Final = Path(__file__).resolve().parents[2]
REFERENCE: Final = ROOT / "docs" / "reference.md"

_EXITS: Final = (
    (0, "done: accepted or adopted; a followed run completed"),
    (1, "refused; a followed run failed; violations or differences found"),
    (2, "wrong usage, before anything was sent"),
    (3, "the server is not available"),
    (4, "the state is incompatible or damaged"),
    (5, "the outcome is unknown after 30 s of resends; `--key` repeats the command"),
    (6, "the followed run was cancelled"),
    (7, "the followed run timed out"),
    (8, "`--deadline` passed; the run goes on"),
    (10, "the run waits for an answer"),
    (11, "the run is paused"),
    (12, "the run is parked for a person"),
    (130, "interrupted; the run goes on"),
)


def reference() -> str:
    """Return the whole page."""
    parts = [
        "# Reference",
        "Generated from the code by `scripts/reference`; the test suite compares the two.",
        "## Commands",
        *_commands(),
        "## Exit codes",
        _table(("code", "meaning"), [(str(code), text) for code, text in _EXITS]),
        "## The workflow language",
        "What `pi_workflows` exports. Plain functions run in a thread, `async` ones under trio.",
        *_language(),
        "## Operations",
        "R reads, C is one transaction with its receipt, M is long and outlives its client.",
        _operations(),
        "## Error codes",
        _error_tree(),
        _error_codes(),
        "## Verification codes",
        _table(("code", "is violated when"), list(CODES.items())),
        "## Events",
        _table(("type", "says"), [(name, _summary(kind)) for name, kind in sorted(EVENTS.items())]),
        "## Limits",
        _table(("name", "value", "reason"), list(_limits())),
    ]
    return "\n\n".join(parts) + "\n"


def _commands() -> Iterator[str]:
    """Yield every command's help."""
    root: Any = typer.main.get_command(app)
    yield from _help(root, ["pi-workflows"], None)


def _help(command: Any, path: list[str], parent: click.Context | None) -> Iterator[str]:
    """Yield the help of a command and of those below it."""
    context = command.context_class(command, info_name=path[-1], parent=parent)
    context.max_content_width = context.terminal_width = 88
    text = "\n".join(line.rstrip() for line in command.get_help(context).split("\n")).strip()
    yield f"### {' '.join(path)}\n\n```text\n{text}\n```"
    for name in getattr(command, "commands", {}):
        yield from _help(command.commands[name], [*path, name], context)


def _language() -> Iterator[str]:
    """Yield every public name of the authoring language with its signature and docstring."""
    for name in pi_workflows.__all__:
        value: Any = getattr(pi_workflows, name)
        text = inspect.getdoc(value) if callable(value) else None
        if text is None or isinstance(value, UnionType):
            continue
        yield f"### {name}\n\n```text\n{_call(name, value)}\n\n{text.strip()}\n```"


def _call(name: str, value: Any) -> str:
    """Return how a name is called: its parameters with their defaults, one a line."""
    if inspect.isclass(value) and Exception in inspect.getmro(value):
        return name
    lines: list[str] = []
    is_keyword = False
    for parameter in inspect.signature(value).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            lines.append("    *,")
        default = parameter.default
        shown = "" if default is parameter.empty else f"={_default(default)}"
        lines.append(f"    {parameter.name}{shown},")
    return f"{name}(\n" + "\n".join(lines) + "\n)" if lines else f"{name}()"


def _default(value: object) -> str:
    """Return a default as a reader would write it."""
    if isinstance(value, timedelta):
        return f"{value.total_seconds() / 60:g} minutes"
    return "None" if value is None or "factory" in repr(value) else repr(value)


def _operations() -> str:
    """Return the table of operations and their payloads."""
    rows: list[tuple[str, ...]] = []
    for operation, spec in OPERATIONS.items():
        fields = [
            f"`{field.alias or name}`{'' if field.is_required() else '?'}"
            for name, field in spec.payload.model_fields.items()
        ]
        summary = _summary(spec.payload).partition(": ")[2]
        rows.append(
            (f"`{operation.value}`", spec.kind.value, spec.run_id.value, ", ".join(fields), summary)
        )
    return _table(("operation", "class", "`runId`", "payload", ""), rows)


def _error_tree() -> str:
    """Return the classes of errors; a branch says what the caller may do next."""
    rows = [
        (name, kind.code, str(kind.exit_code), _summary(kind))
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, WorkflowsError)
    ]
    return _table(("class", "code", "exit", "meaning"), rows)


def _error_codes() -> str:
    """Return every more exact code, with a message that it comes with."""
    found: dict[str, tuple[str, str]] = {}
    for package in ("pi_workflows", "projections"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for code, kind, message in _raised(ast.parse(file.read_text(encoding="utf-8"))):
                found.setdefault(code, (kind, message))
    rows = [(f"`{code}`", kind, message) for code, (kind, message) in sorted(found.items())]
    return _table(("code", "class", "says, for instance"), rows)


def _raised(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Yield code, class and message of each error that is made with a code of its own."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        kind = getattr(errors, node.func.id, None)
        if not isinstance(kind, type) or not issubclass(kind, WorkflowsError):
            continue
        for keyword in node.keywords:
            if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value), node.func.id, _message(node)


def _message(call: ast.Call) -> str:
    """Return the message of an error, with a name where a value will stand."""
    if not call.args:
        return ""
    match call.args[0]:
        case ast.Constant(value=value):
            return str(value)
        case ast.JoinedStr(values=values):
            return "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in values
            )
        case _:
            return ""


def _limits() -> Iterator[tuple[str, str, str]]:
    """Yield every limit with its value and the comment above it."""
    text = (ROOT / "pi_workflows" / "base" / "limits.py").read_text(encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(compile(text, "limits.py", "exec"), scope)  # noqa: S102 - our own constants
    reason: list[str] = []
    # A comment speaks of every constant below it, up to the next comment.
    is_spoken = False
    for line in text.split("\n"):
        if line.startswith("# ---") or not line.strip():
            reason = []
        elif line.startswith("# "):
            reason = [*([] if is_spoken else reason), line[2:]]
            is_spoken = False
        elif found := re.match(r"([A-Z][A-Z0-9_]+): Final", line):
            value = scope[found[1]]
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            is_spoken = True
            yield f"`{found[1]}`", shown, " ".join(reason)


def _summary(kind: type) -> str:
    """Return the first sentence of a docstring."""
    return (kind.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    cells = [tuple(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in rows]
    lines = [head, ("---",) * len(head), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(reference())
