"""One JSON line in, one JSON line out: how a resolver or validator speaks to its spawner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BufferedReader
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded, PayloadInvalid
from pi_workflows.base.limits import CHILD_ANSWER_BYTES_MAX, FRAME_DEPTH_MAX

_STDIN: Final = 0
_STDOUT: Final = 1
_STDERR: Final = 2


class Exchange:
    """The spawner's two pipes, out of reach of the author's code.

    Whatever an author's file prints goes to standard error, and it reads an empty standard input.

    Args:
        requests: The pipe that the spawner's lines come from.
        answers: The descriptor that answers are written to.
    """

    def __init__(self, requests: BufferedReader, answers: int) -> None:
        self._requests = requests
        self._answers = answers

    @classmethod
    def take_over(cls) -> Exchange:
        """Take this process's standard input and output for the exchange."""
        requests = os.fdopen(os.dup(_STDIN), "rb")
        answers = os.dup(_STDOUT)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, _STDIN)
        os.close(empty)
        os.dup2(_STDERR, _STDOUT)
        return cls(requests, answers)

    def lines(self) -> Iterator[bytes]:
        """Yield each request without its newline, until the spawner closes the pipe.

        Raises:
            LimitExceeded: A line is over 8 MiB; what follows it cannot be told apart any more.
        """
        while line := self._requests.readline(CHILD_ANSWER_BYTES_MAX + 1):
            if len(line) > CHILD_ANSWER_BYTES_MAX:
                message = f"request: over {CHILD_ANSWER_BYTES_MAX:,} bytes"
                raise LimitExceeded(message, code="requestTooLarge", field="request")
            if line.strip():
                yield line.removesuffix(b"\n")

    def answer(self, document: Json) -> None:
        """Write one answer.

        Raises:
            LimitExceeded: The answer is over 8 MiB (`answerTooLarge`); nothing was written.
            PayloadInvalid: The answer holds something that is not JSON; nothing was written.
        """
        content = canonical.encode(document, depth_max=FRAME_DEPTH_MAX, field="answer") + b"\n"
        if len(content) > CHILD_ANSWER_BYTES_MAX:
            message = f"answer: {len(content):,} bytes; at most {CHILD_ANSWER_BYTES_MAX:,}"
            raise LimitExceeded(message, code="answerTooLarge", field="answer")
        view = memoryview(content)
        while view:
            view = view[os.write(self._answers, view) :]


def parsed(line: bytes) -> Json:
    """Read a request line. Raises PayloadInvalid when it is no JSON object."""
    request = canonical.decode(line, depth_max=FRAME_DEPTH_MAX, field="request")
    if not isinstance(request, dict):
        message = "request: must be a JSON object"
        raise PayloadInvalid(message, field="request")
    return request
