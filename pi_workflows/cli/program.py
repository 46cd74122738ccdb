"""The program `pi-workflows`: reads the command line, runs one command, exits with its code."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from types import TracebackType

import typer

from pi_workflows.cli.failure import INTERRUPTED, PROGRAM, USAGE, Failure
from pi_workflows.cli.output import Output
from pi_workflows.cli.termination import Terminated, unwind_when_terminated


def main() -> None:
    """Run the command that `sys.argv` names, and exit."""
    _open_streams()
    sys.excepthook = _report_bug
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A locale that lacks a character must not end the command that prints it.
            stream.reconfigure(errors="backslashreplace")
    unwind_when_terminated()
    try:
        # Before that Ctrl-C has nothing to tell.
        import_module("pi_workflows.cli.app")
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run(sys.argv[1:])
    except (KeyboardInterrupt, typer.Abort):
        # Of a command that had begun to do something it was told already.
        failure = Failure("interrupted", "Interrupted.", INTERRUPTED)
        Output(is_json=_wants_json(sys.argv[1:]), no_color=False).fail(failure)
        code = INTERRUPTED
    except Terminated as error:
        from pi_workflows.cli.command import terminated  # noqa: PLC0415 - it takes time to load

        code = terminated(Output(is_json=_wants_json(sys.argv[1:]), no_color=False), error)
    sys.exit(code)


def _open_streams() -> None:
    """Give a program that was started without a standard stream an empty one.

    Otherwise the next file that it opens takes the number, and what is printed goes into that.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            setattr(sys, name, os.fdopen(descriptor, mode))


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Args:
        arguments: The command line without the program's name.

    Returns:
        The exit code.
    """
    from pi_workflows.cli.app import app  # noqa: PLC0415 - what main() prepares comes first

    program = typer.main.get_command(app)
    output = Output(is_json=_wants_json(arguments), no_color="--no-color" in arguments)
    unreadable = next((each for each in arguments if not _is_text(each)), None)
    if unreadable is not None:
        output.fail(Failure("notUtf8", f"This argument is not UTF-8: {unreadable}", USAGE))
        return USAGE
    try:
        code: object = program.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except typer.TyperException as error:
        output.fail(_usage(error))
        return USAGE
    return code if isinstance(code, int) else 0


def _is_text(argument: str) -> bool:
    """Whether an argument's bytes are UTF-8: no name, document or message could hold the others."""
    return not any("\ud800" <= each <= "\udfff" for each in argument)


def _usage(error: typer.TyperException) -> Failure:
    """Describe a command line that could not be read, in one line."""
    message = " ".join(error.format_message().split())
    # Which library refused a value is nobody's business.
    message = message.replace(": Value error, ", ": ", 1)
    path = getattr(getattr(error, "ctx", None), "command_path", PROGRAM)
    field = getattr(getattr(error, "param", None), "name", None)
    return Failure(
        "wrongUsage",
        message,
        USAGE,
        field=field if isinstance(field, str) else None,
        hint=f"See: {path} --help",
    )


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line that cannot be read asks for JSON."""
    options = list(arguments)
    return "--json" in (options[: options.index("--")] if "--" in options else options)


def _report_bug(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Say in one line that we made a mistake, and where: a person reports it, a program goes on."""
    frames = traceback.extract_tb(trace)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    message = " ".join(f"{kind.__name__}: {error}".split())
    failure = Failure("internalError", f"{message}{place}", 1, hint="Please report this.")
    Output(is_json=_wants_json(sys.argv[1:]), no_color=False).fail(failure)
