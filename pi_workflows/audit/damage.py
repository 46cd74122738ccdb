"""What a contradiction means in a file that nobody has verified: damage, not a bug of ours."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from pi_workflows.base.errors import Corrupt, PayloadInvalid


@contextmanager
def damage_of_file() -> Generator[None]:
    """Read a file that may hold anything while the body runs.

    The live database is verified when it is opened, so that a row that is not as it must be is our
    bug there. A file may come from anybody, and looking into it must not need a verification first.

    Raises:
        Corrupt: What is stored contradicts itself (`contradiction`).
    """
    try:
        yield
    except (AssertionError, LookupError, PayloadInvalid, TypeError, ValueError) as error:
        raise Corrupt("What is stored contradicts itself.", code="contradiction") from error
