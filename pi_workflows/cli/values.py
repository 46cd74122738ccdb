"""Values from the command line: JSON or text, written out, in a file, or on standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, WrongUsage
from pi_workflows.base.limits import FRAME_BYTES_MAX

_STANDARD_INPUT: Final = "-"


def json_value(typed: str, *, field: str) -> Json:
    """Read a JSON value.

    Args:
        typed: JSON, `@FILE`, or `-` for standard input.
        field: The option or argument, for errors.

    Raises:
        WrongUsage: `notJson`: it is no JSON. `fileUnreadable`: the file cannot be read.
    """
    return _parsed(_content(typed, field), typed, field)


def json_or_text(typed: str, *, field: str, is_text: bool) -> Json:
    """Read a value that is JSON if it parses, and text otherwise.

    Args:
        typed: The value, `@FILE`, or `-` for standard input.
        field: The option or argument, for errors.
        is_text: Take it as text in any case.

    Raises:
        WrongUsage: The file cannot be read, or is no UTF-8.
    """
    content = _content(typed, field)
    if not is_text:
        try:
            return canonical.decode(content, field=field)
        except PayloadInvalid:
            pass
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise WrongUsage(
            f"{field}: {_place(typed)} is neither JSON nor UTF-8 text", code="notText", field=field
        ) from None
    # An editor ends a file with a newline that nobody means as a part of the answer.
    return text if typed[:1] not in ("@", _STANDARD_INPUT) else text.removesuffix("\n")


def text_reason(typed: str) -> str | None:
    """Say why a value that looks like JSON was taken as text.

    Args:
        typed: The value as it stood on the command line.

    Returns:
        One sentence; None when nobody meant JSON, or the value did not stand there.
    """
    if not typed.lstrip().startswith(("{", "[", '"')):
        return None
    try:
        canonical.decode(typed.encode("utf-8", "surrogateescape"), field="")
    except PayloadInvalid as error:
        reason = error.message.removeprefix(": ")
        return f"VALUE was taken as text, as it is {reason}"
    return None


def _parsed(content: bytes, typed: str, field: str) -> Json:
    """Decode JSON."""
    try:
        return canonical.decode(content, field=field)
    except PayloadInvalid as error:
        message = error.message.removeprefix(f"{field}: ")
        raise WrongUsage(
            f"{field}: {_place(typed)} is not acceptable JSON: {message}",
            code=error.reason_code,
            field=field,
        ) from None


def _content(typed: str, field: str) -> bytes:
    """Return the bytes of a value."""
    if typed == _STANDARD_INPUT:
        content = sys.stdin.buffer.read(FRAME_BYTES_MAX + 1)
    elif typed.startswith("@"):
        try:
            with Path(typed[1:]).expanduser().open("rb") as file:
                content = file.read(FRAME_BYTES_MAX + 1)
        except OSError as error:
            raise WrongUsage(
                f"{field}: {typed[1:]} cannot be read: {error.strerror}",
                code="fileUnreadable",
                field=field,
            ) from None
    else:
        content = typed.encode("utf-8", "surrogateescape")
    if len(content) > FRAME_BYTES_MAX:
        raise WrongUsage(
            f"{field}: {_place(typed)} has more than {FRAME_BYTES_MAX:,} bytes",
            code="valueTooLarge",
            field=field,
            hint="Put large data into a file and pass its path.",
        )
    return content


def _place(typed: str) -> str:
    """Say where a value came from."""
    if typed == _STANDARD_INPUT:
        return "standard input"
    return typed[1:] if typed.startswith("@") else "the value"
