"""How a command is declared: arguments, global options, examples, what becomes of errors."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

import typer

from pi_workflows.base.errors import WorkflowsError
from pi_workflows.cli.failure import INTERRUPTED, PIPE_CLOSED, PROGRAM, USAGE, Failure
from pi_workflows.cli.help import HelpedCommand
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.output import UNWRITABLE, Output
from pi_workflows.cli.termination import Terminated, termination_in

Body: TypeAlias = Callable[..., int]
"""A command: takes an Invocation and its arguments, returns the exit code."""


@dataclass(frozen=True, slots=True)
class Globals:
    """The global options as they stand before the command's name."""

    is_json: bool = False
    key: str | None = None
    no_color: bool = False


JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Write JSON for programs, one line.")
]
KeyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help="Repeat a command whose outcome is unknown, under the key that it printed.",
    ),
]
NoColorOption: TypeAlias = Annotated[
    bool, typer.Option("--no-color", help="Write no colours, as with NO_COLOR.")
]


def _option(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


_OPTIONS: Final = (
    _option("is_json", JsonOption, default=False),
    _option("key", KeyOption, default=None),
    _option("no_color", NoColorOption, default=False),
)
_CONTEXT: Final = inspect.Parameter(
    "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
)


def command(
    app: typer.Typer, name: str, *, panel: str | None = None, examples: Sequence[str]
) -> Callable[[Body], Body]:
    """Declare a command.

    Args:
        app: The group that it belongs to.
        name: What is typed.
        panel: The heading under which help lists it.
        examples: What stands behind the program's name in each example.

    Returns:
        A decorator for the body, whose docstring is the help. Its parameters after the Invocation
        are the command's arguments; `--json`, `--key` and `--no-color` come with every command and
        may stand before or behind its name.
    """

    def declare(body: Body) -> Body:
        def run(ctx: typer.Context, **values: object) -> int:
            given = _joined(ctx, values)
            return guarded(_invocation(given), lambda invocation: body(invocation, **values))

        _sign(run, _own_parameters(body))
        app.command(
            name,
            cls=HelpedCommand,
            help=inspect.getdoc(body),
            epilog=_epilog(examples),
            rich_help_panel=panel,
        )(run)
        return body

    return declare


def group(app: typer.Typer, *, examples: Sequence[str] = ()) -> Callable[[Body], Body]:
    """Declare what a group does when no command of it is named.

    Args:
        app: The group.
        examples: As `command`.

    Returns:
        A decorator for the body, as `command`.
    """

    def declare(body: Body) -> Body:
        def run(ctx: typer.Context, **values: object) -> int:
            given = _joined(ctx, values)
            ctx.obj = given
            if ctx.invoked_subcommand is not None:
                return 0
            return guarded(_invocation(given), lambda invocation: body(invocation, **values))

        _sign(run, _own_parameters(body))
        app.callback(
            invoke_without_command=True,
            help=inspect.getdoc(body),
            epilog=_epilog(examples) if examples else None,
        )(run)
        return body

    return declare


def needs_command(
    app: typer.Typer, text: str, *, flags: Mapping[str, object] | None = None
) -> None:
    """Declare a group that does nothing by itself.

    Args:
        app: The group.
        text: Its help.
        flags: Further options without a value: each name with its annotation. Their callbacks do
            everything.
    """
    further = tuple((flags or {}).items())

    def run(ctx: typer.Context, **values: object) -> int:
        given = _joined(ctx, values)
        ctx.obj = given
        if ctx.invoked_subcommand is not None:
            return 0
        if not given.is_json and sys.stderr.isatty():
            typer.echo(ctx.get_help(), err=True)
            return USAGE
        hint = f"See: {ctx.command_path} --help"
        _invocation(given).output.fail(Failure("wrongUsage", "Missing command.", USAGE, hint=hint))
        return USAGE

    _sign(run, [_option(name, annotation, default=False) for name, annotation in further])
    app.callback(invoke_without_command=True, help=text)(run)


def _own_parameters(body: Body) -> Sequence[inspect.Parameter]:
    """Return the arguments of a command, without the Invocation."""
    first, *own = inspect.signature(body, eval_str=True).parameters.values()
    assert first.annotation is Invocation, "a command takes an Invocation first"
    # Keywords may follow in any order, whether or not they have defaults.
    return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]


def _sign(run: Callable[..., int], own: Sequence[inspect.Parameter]) -> None:
    """Let typer read a function's parameters from these."""
    run.__signature__ = inspect.Signature([_CONTEXT, *own, *_OPTIONS])  # type: ignore[attr-defined]
    run.__annotations__ = {}


def _epilog(examples: Sequence[str]) -> str:
    """Return the examples as help shows them, each in a line of its own."""
    title = "Example:" if len(examples) == 1 else "Examples:"
    # A paragraph that begins so is not filled.
    return "\n".join(("\b", title, *(f"  {PROGRAM} {example}" for example in examples)))


def _joined(ctx: typer.Context, values: dict[str, object]) -> Globals:
    """Take the global options out of a command's values, joined with those that stood before it."""
    before = ctx.find_object(Globals) or Globals()
    key = values.pop("key")
    return Globals(
        is_json=values.pop("is_json") is True or before.is_json,
        key=key if isinstance(key, str) else before.key,
        no_color=values.pop("no_color") is True or before.no_color,
    )


def _invocation(given: Globals) -> Invocation:
    """Begin an invocation."""
    output = Output(is_json=given.is_json, no_color=given.no_color)
    return Invocation(output) if given.key is None else Invocation(output, given.key)


def guarded(invocation: Invocation, body: Callable[[Invocation], int]) -> int:
    """Run a command's body and turn what it raises into what its user reads.

    Args:
        invocation: The invocation.
        body: Does the work.

    Returns:
        The exit code.
    """
    try:
        code = body(invocation)
        sys.stdout.flush()
    except WorkflowsError as error:
        if error.reason_code == UNWRITABLE:
            return _unwritable(error)
        failure = Failure.of(error, key=invocation.key)
    except KeyboardInterrupt:
        failure = _interrupted(invocation.followed)
    except BrokenPipeError:
        return _closed()
    except (Terminated, OSError) as error:
        # A display that is taken away cannot write to a terminal that is gone.
        ended = termination_in(error)
        if ended is None:
            raise
        return terminated(invocation.output, ended, followed=invocation.followed)
    else:
        return code
    try:
        invocation.output.fail(failure)
    except BrokenPipeError:
        return _closed()
    except WorkflowsError as error:
        return _unwritable(error)
    return failure.exit_code


def _unwritable(error: WorkflowsError) -> int:
    """Say that the output takes nothing, where that can still be said."""
    _closed()
    failure = Failure.of(error)
    with suppress(OSError):
        sys.stderr.write(f"{failure.lines()[0]}\n")
        sys.stderr.flush()
    return failure.exit_code


def terminated(output: Output, error: Terminated, *, followed: tuple[str, ...] = ()) -> int:
    """Say, where that can still be said, that a signal ended the command and nothing else.

    Args:
        output: Where to; the terminal may be gone.
        error: Which signal.
        followed: The runs that go on.

    Returns:
        The exit code.
    """
    message = _ended_message(f"Terminated by {error.name}", followed)
    with suppress(OSError, WorkflowsError):
        output.fail(Failure("terminated", message, error.exit_code))
        return error.exit_code
    _closed()
    return error.exit_code


def _interrupted(followed: tuple[str, ...]) -> Failure:
    """Say that a Ctrl-C ended the command and nothing else."""
    return Failure("interrupted", _ended_message("Interrupted", followed), INTERRUPTED)


def _ended_message(what: str, followed: tuple[str, ...]) -> str:
    """Say what ended the command, and what did not end with it."""
    if not followed:
        return f"{what}."
    names = " ".join(followed)
    going = "goes on" if len(followed) == 1 else "go on"
    return (
        f"{what}; {names} {going}."
        f" Follow: {PROGRAM} watch {names}. End: {PROGRAM} cancel {followed[0]}."
    )


def _closed() -> int:
    """Let go of a standard output that nobody reads, so that the exit is silent too."""
    empty = os.open(os.devnull, os.O_WRONLY)
    os.dup2(empty, sys.stdout.fileno())
    os.close(empty)
    return PIPE_CLOSED
