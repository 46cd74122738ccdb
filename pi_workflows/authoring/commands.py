"""What a shell step runs and what came of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from pi_workflows.base.canonical import Json


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments; no shell reads them.

    Attributes:
        argv: The program and its arguments, at least one text.
        cwd: The directory to run in; by default the run's project. A relative one is below the
            project.
        env: Variables to add to the runner's, or to take away (None).
        stdin: Text for the program's standard input; by default it is empty.
    """

    argv: Sequence[str]
    cwd: str | os.PathLike[str] | None = None
    env: Mapping[str, str | None] | None = None
    stdin: str | None = None

    def request(self, project_path: str) -> dict[str, Json]:
        """Return what the effect of a shell step with this command asks for.

        The subject of a decision that approves the step: `approved_by` compares the two.

        Args:
            project_path: The run's project, `ctx.project_path`.

        Returns:
            The program with its arguments, the absolute directory, and the SHA-256 of what it reads
            on its standard input, if anything. Its variables are no part of it.
        """
        asked: dict[str, Json] = {
            "command": [*self.argv],
            "cwd": os.path.normpath(os.path.join(project_path, self.cwd or ".")),  # noqa: PTH118
        }
        if self.stdin is not None:
            asked["stdinSha256"] = hashlib.sha256(os.fsencode(self.stdin)).hexdigest()
        return asked

    def fault(self) -> str | None:
        """Return what is wrong with the command in one line, or None."""
        argv = cast("object", self.argv)
        if isinstance(argv, str | bytes) or not isinstance(argv, Sequence):
            return "argv is a list of texts, such as Command(['git', 'status'])"
        parts = [part for part in cast("Sequence[object]", argv) if isinstance(part, str)]
        if not parts or len(parts) < len(self.argv):
            return "argv holds at least the program, and only texts"
        if not parts[0] or any("\0" in part for part in parts):
            return "argv: the program has a name, and no argument holds a NUL"
        cwd = cast("object", self.cwd)
        if cwd is not None and not isinstance(cwd, str | os.PathLike):
            return "cwd is a path"
        if "\0" in str(cast("object", self.cwd)):
            return "cwd holds no NUL"
        env = cast("object", self.env)
        if env is not None and not _are_variables(env):
            return "env maps names without '=' to texts without NUL, or to None to take one away"
        stdin = cast("object", self.stdin)
        if stdin is not None and not isinstance(stdin, str):
            return "stdin is text"
        if isinstance(stdin, str) and not _is_encodable(stdin):
            return "stdin holds half a surrogate pair, which no bytes stand for"
        return None


def _are_variables(env: object) -> bool:
    if not isinstance(env, Mapping):
        return False
    return all(map(_is_variable, cast("Mapping[object, object]", env).items()))


def _is_variable(item: tuple[object, object]) -> bool:
    name, value = item
    if not isinstance(name, str) or not name or "=" in name or not _is_variable_text(name):
        return False
    return value is None or (isinstance(value, str) and _is_variable_text(value))


def _is_variable_text(text: str) -> bool:
    return "\0" not in text and _is_encodable(text)


def _is_encodable(text: str) -> bool:
    """Whether bytes stand for a text: what the operating system gave us does always."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


class ShellResult(BaseModel):
    """What came of a command; the effect's stored result, and the output of a step without `parse`.

    Attributes:
        command: The program and its arguments.
        cwd: The directory that it ran in.
        exit_code: Its exit code; None when a signal ended it.
        signal: The signal that ended it, such as `SIGKILL`.
        duration_ms: Milliseconds from start to end.
        stdout: What it wrote, undecodable bytes replaced; at most 1,000,000 characters.
        stderr: The same for its errors.
        stdout_truncated: Whether it wrote more.
        stderr_truncated: Whether it wrote more errors.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
    )

    command: tuple[str, ...]
    cwd: str
    exit_code: int | None
    signal: str | None = None
    duration_ms: int
    stdout: str
    stderr: str
    stdout_truncated: bool = False
    stderr_truncated: bool = False


@dataclass(frozen=True, slots=True)
class ShellLine:
    """One line that a running command wrote, without its newline."""

    stream: Literal["stdout", "stderr"]
    text: str
