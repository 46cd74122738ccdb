"""Who answers a command that only reads: the server, or a file that no server has open."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pi_workflows.base.clock import SystemClock
from pi_workflows.base.errors import AuthorityDenied, Corrupt, Incompatible, NotFound
from pi_workflows.cli.connection import client, state_directory
from pi_workflows.cli.failure import unsent
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.lookup import Lookup, run_id_among, run_id_of
from pi_workflows.cli.quoting import quoted_path
from pi_workflows.cli.reader import FileReader, Reader


@dataclass(frozen=True, slots=True)
class Source:
    """Who answers, and as of when.

    Attributes:
        reader: Answers requests.
        now_ms: The time by which durations are told: of the newest event of a file.
        file: The file; None for the server.
        place: Which moment of which file that is, in words.
        lookup: Finds the runs of a file by a prefix; None leaves it to the server's run list.
    """

    reader: Reader
    now_ms: int
    file: Path | None = None
    place: str = ""
    lookup: Lookup | None = None

    @classmethod
    def of_file(cls, reader: FileReader, at_ms: int, file: Path) -> Self:
        """Ask a file as it stands.

        Args:
            reader: Answers from the file.
            at_ms: When its newest event was recorded.
            file: The file.
        """
        return cls(reader, at_ms, file, f"in {file}", reader.runs_beginning)

    @property
    def option(self) -> str:
        """What a command has to be told in order to ask the same source."""
        return "" if self.file is None else f" --file {quoted_path(self.file)}"

    def run_id_of(self, typed: str) -> str:
        """Return the ID of the run that a whole ID or a unique prefix names; raises as `lookup`."""
        try:
            if self.lookup is not None:
                return run_id_among(self.lookup, typed)
            return run_id_of(self.reader, typed)
        except NotFound as error:
            if self.file is None:
                raise
            raise NotFound(
                f"{self.file} has no run {typed}.",
                code=error.reason_code,
                field=error.field,
                hint=f"List its runs: pi-workflows audit log {quoted_path(self.file)}"
                " --type run.queued",
            ) from None


@contextmanager
def source(invocation: Invocation, file: Path | None) -> Generator[Source]:
    """Reach the source that a command was told to ask, for as long as the body runs.

    Args:
        invocation: Who asks.
        file: A database that no server has open; None is the server, which is started.

    Raises:
        WorkflowsError: As `client` or `reading_file`, with the file's name.
    """
    if file is None:
        with client(invocation) as server:
            yield Source(server, SystemClock().now_ms())
        return
    with _open(file) as opened:
        yield opened


def run_in(file: Path, typed: str) -> str:
    """Return the ID of the run of a file that a whole ID or a unique prefix names.

    Args:
        file: A database that no server has open.
        typed: The run.

    Raises:
        NotFound: `runMissing`.
        Refused: `runAmbiguous`.
        WorkflowsError: As `source`.
    """
    with _open(file) as asked:
        return asked.run_id_of(typed)


@contextmanager
def _open(file: Path) -> Generator[Source]:
    """Read a file."""
    # Only a file needs the store and the views, which cost more than to ask the server.
    from pi_workflows.audit.reading import reading_file  # noqa: PLC0415

    with refusing(file), reading_file(file, live_directory=state_directory().root) as reader:
        yield Source.of_file(reader, reader.at_ms, file)


@contextmanager
def refusing(file: Path) -> Generator[None]:
    """Give a refused file its exit code and name it; one that is missing is wrong usage."""
    try:
        yield
    except AuthorityDenied as error:
        raise Incompatible(
            error.message, code=error.reason_code, field=error.field, hint=error.hint
        ) from None
    except Incompatible as error:
        # The fixed text is about the live database, and says to move that.
        raise Incompatible(
            f"{file} is not a Pi Workflows database of this version.",
            code=error.reason_code,
            field=str(file),
        ) from None
    except Corrupt as error:
        raise Corrupt(
            f"{file}: {error.message}",
            code=error.reason_code,
            field=str(file),
            hint=error.hint or _help_with(file, error),
        ) from None
    except NotFound as error:
        if error.reason_code != "fileMissing":
            raise
        raise unsent(error) from None


def _help_with(file: Path, error: Corrupt) -> str:
    """Say what to do about a file that is damaged; one that can be read can also be verified."""
    if error.reason_code == Corrupt.code:
        return "Restore a backup."
    return f"See what is broken: pi-workflows state verify {quoted_path(file)}"
