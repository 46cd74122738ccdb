"""What is wrong with what an author declared about a node; `define_workflow` adds where."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import cast

from pydantic import BaseModel

from pi_workflows.authoring.commands import Command
from pi_workflows.authoring.outputs import OutputModel, returned_model
from pi_workflows.authoring.policies import Effect, retry_policy, timeout_problems
from pi_workflows.base.errors import Problem
from pi_workflows.base.limits import STATUS_DETAIL_CHARS_MAX


def declared_model(output: object) -> OutputModel | None:
    """Return the output model of a declared pydantic model, or None for anything else."""
    if isinstance(output, type) and issubclass(output, BaseModel):
        return OutputModel.of(output)
    return None


def output_model(output: object, function: object) -> OutputModel | None:
    """Return the declared output model, or the one that a function is annotated with."""
    if output is not None:
        return declared_model(output)
    return returned_model(function) if callable(function) else None


def function_problems(function: object, what: str) -> Iterator[Problem]:
    """Yield why something cannot be called with one argument."""
    if not callable(function):
        yield Problem("callbackInvalid", "", f"{what} is {function!r:.60}: use a function")
        return
    try:
        inspect.signature(function).bind(object())
    except TypeError:
        yield Problem("callbackInvalid", "", f"{what} takes exactly one argument")
    except ValueError:
        # A callable written in C has no signature to look at; it is tried when it runs.
        return


def command_problems(command: object) -> Iterator[Problem]:
    """Yield what is wrong with a fixed command, or with the function that builds one."""
    if isinstance(command, Command):
        fault = command.fault()
        if fault is not None:
            yield Problem("commandInvalid", "", f"command: {fault}")
    elif callable(command):
        yield from function_problems(command, "the command's function")
    else:
        yield Problem(
            "commandInvalid",
            "",
            f"command is {command!r:.60}: use Command([...]) or a function that returns one",
        )


def output_without_parse(output: object, parse: object) -> Iterator[Problem]:
    """Yield that a command without `parse` has its result as its output."""
    if output is not None and parse is None:
        yield Problem(
            "outputNotModel", "", "output: without parse the output is the command's ShellResult"
        )


def effect_problems(effect: object) -> Iterator[Problem]:
    """Yield that an effect is missing, with both choices, or what is wrong with it."""
    if effect is None:
        yield Problem(
            "effectMissing",
            "",
            "effect is missing: declare idempotent_effect('type') if repeating it is harmless,"
            " else manual_effect('type')",
        )
    elif not isinstance(effect, Effect):
        yield Problem(
            "effectMissing",
            "",
            f"effect is {effect!r:.60}: declare idempotent_effect('type') if repeating it is"
            " harmless, else manual_effect('type')",
        )
    elif not isinstance(cast("object", effect.type), str):
        yield Problem("effectTypeInvalid", "", "effect type: use text such as 'repo.read'")


def common_problems(timeout: object, output: object, status_detail: object) -> Iterator[Problem]:
    """Yield what is wrong with what every node may declare."""
    yield from timeout_problems("", timeout)
    if callable(timeout):
        yield from function_problems(timeout, "timeout")
    if output is not None and declared_model(output) is None:
        yield Problem("outputNotModel", "", f"output is {output!r:.60}: use a pydantic model class")
    if status_detail is not None:
        yield from text_problems(
            "statusDetailInvalid", "status_detail", status_detail, STATUS_DETAIL_CHARS_MAX
        )


def retry_problems(retry: object) -> Iterator[Problem]:
    """Yield that a retry has a part of the wrong type; its bounds are the graph's to check."""
    if retry is not None and retry_policy(retry) is None:
        yield Problem(
            "retryInvalid",
            "",
            f"retry is {retry!r:.120}: use Retry(max_attempts=3, on=('failed',),"
            " delay=timedelta(seconds=10), backoff=2.0)",
        )


def name_problems(what: str, name: object) -> Iterator[Problem]:
    """Yield that what names a node is no text."""
    if name is not None and not isinstance(name, str):
        yield Problem("nameInvalid", "", f"{what} is {name!r:.60}: use the name of a node")


def text_problems(code: str, what: str, text: object, chars_max: int) -> Iterator[Problem]:
    """Yield that a text is missing or too long."""
    if not isinstance(text, str) or not text.strip() or len(text) > chars_max:
        yield Problem(code, "", f"{what}: use text of 1 to {chars_max:,} characters")
