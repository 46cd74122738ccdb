"""What answers a question about runs: the live server, or a file that no server has open."""

from __future__ import annotations

from typing import Protocol

from pi_workflows.base.canonical import Json
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.wire import Payload


class Reader(Protocol):
    """Answers requests one by one. `client.blocking.Client` and `audit.reading.FileReader` do."""

    def request(
        self,
        operation: Operation,
        payload: Payload | Json,
        *,
        run_id: str | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Reply:
        """Ask for something and wait for the answer.

        Args:
            operation: What to do.
            payload: Its payload, as a model or a JSON object.
            run_id: The run, for the operations that are about one.
            expected_revision: The revision at which the resource must still be.
            key: The idempotency key of a command.

        Returns:
            The reply, also of a refusal: `reply.done()` raises it.

        Raises:
            PayloadInvalid: No such request can be asked.
            WorkflowsError: As the one that answers says.
        """
        ...


class FileReader(Reader, Protocol):
    """Answers about a file, also which runs it has when it cannot be listed.

    `audit.reading.FileReader` does.
    """

    def runs_beginning(self, prefix: str, limit: int) -> tuple[list[str], int]:
        """Return the runs whose ID begins so, whatever of their other rows is missing.

        Args:
            prefix: A beginning, or a whole ID.
            limit: How many at most.

        Returns:
            Their IDs, the run that is called exactly so first; and how many there are.
        """
        ...
