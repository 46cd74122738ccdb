"""Lines of this runner for the server's log."""

from __future__ import annotations

from pi_workflows.base.clock import Clock
from pi_workflows.base.limits import RUNNER_LOG_BYTES_MAX, RUNNER_LOGS_PER_SECOND_MAX
from pi_workflows.base.rate import Rate
from pi_workflows.protocol.runner import Log
from pi_workflows.runner.channel import Channel


class Logs:
    """Sends log lines; what comes too fast is left out."""

    def __init__(self, channel: Channel, clock: Clock) -> None:
        """Log over a channel."""
        self._channel = channel
        self._rate = Rate(
            clock, per_second=RUNNER_LOGS_PER_SECOND_MAX, burst=RUNNER_LOGS_PER_SECOND_MAX
        )

    def warning(self, text: str) -> None:
        """Log that something of the author's did not work but does not matter to the run."""
        if not self._rate.take():
            return
        content = text.encode(errors="replace")[:RUNNER_LOG_BYTES_MAX]
        self._channel.send(Log(level="warning", text=content.decode(errors="ignore")))
