"""What a server is told from outside: its environment, its version, and how it is meant to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import RUNNERS_DEFAULT

RUNNERS_VARIABLE: Final = "PI_WORKFLOWS_MAX_RUNNERS"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one server process.

    Attributes:
        environment: The process environment at its start; children get it without our own
            variables.
        package_version: Our own version.
        runners_max: Runs that execute at once.
        leaves_when_idle: Whether it ends when nobody has needed it for ten minutes.
    """

    environment: Mapping[str, str]
    package_version: str
    runners_max: int = RUNNERS_DEFAULT
    leaves_when_idle: bool = True


def runners_max(environment: Mapping[str, str]) -> int:
    """Read how many runs may execute at once.

    Args:
        environment: The process environment.

    Returns:
        `PI_WORKFLOWS_MAX_RUNNERS`, or four.

    Raises:
        PayloadInvalid: `maxRunnersInvalid`: it is no number from 1 on.
    """
    text = environment.get(RUNNERS_VARIABLE, "")
    if not text:
        return RUNNERS_DEFAULT
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise PayloadInvalid(
            f"{RUNNERS_VARIABLE} is not a number from 1 on.",
            code="maxRunnersInvalid",
            field=RUNNERS_VARIABLE,
        )
    return int(text)
