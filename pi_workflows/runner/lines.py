"""An author's reader of a command's lines: it turns them into updates while the command runs."""

from __future__ import annotations

from typing import cast

from pi_workflows.authoring.commands import ShellLine
from pi_workflows.authoring.context import Context
from pi_workflows.authoring.nodes import LineReader
from pi_workflows.authoring.updates import Update
from pi_workflows.base.errors import Refused
from pi_workflows.definition.progress import Progress
from pi_workflows.runner.attempts import Attempt
from pi_workflows.runner.calls import Calls, Returned
from pi_workflows.runner.logs import Logs


class LineUpdates:
    """Reads lines for one command. What goes wrong costs the updates, never the command."""

    def __init__(
        self,
        attempt: Attempt,
        context: Context[object],
        reader: LineReader,
        calls: Calls,
        logs: Logs,
    ) -> None:
        """Read lines.

        Args:
            attempt: The attempt that the command runs for.
            context: What updates are published with.
            reader: The author's function.
            calls: How it is called.
            logs: Where it is told that it does not work.
        """
        self._attempt = attempt
        self._context = context
        self._reader = reader
        self._calls = calls
        self._logs = logs
        self._is_broken = False

    async def read(self, lines: list[ShellLine]) -> None:
        """Read lines and publish the newest update of each type among them."""
        if self._is_broken:
            return
        newest: dict[str, Progress | Update] = {}
        called = await self._calls.call(
            self._collect,
            lines,
            newest,
            deadline_ns=self._attempt.deadline_ns,
            cancel=self._attempt.cancel,
        )
        if not isinstance(called, Returned):
            self._is_broken = True
            self._logs.warning(f"{self._attempt.node_path}: reading lines failed: {called!r:.200}")
            return
        for update in newest.values():
            await self._publish(update)

    def _collect(self, lines: list[ShellLine], newest: dict[str, Progress | Update]) -> None:
        """Call the author's function for each line; runs in a thread."""
        for line in lines:
            update = self._reader(line)
            if update is not None:
                if not isinstance(cast("object", update), Progress | Update):
                    message = f"a reader of lines returns updates, not {type(update).__name__}"
                    raise TypeError(message)
                newest[update.type if isinstance(update, Update) else "progress"] = update

    async def _publish(self, update: Progress | Update) -> None:
        try:
            await self._context.publish_update(update)
        except Refused as error:
            self._logs.warning(f"{self._attempt.node_path}: {error.message}")
