"""A model on the loopback interface that answers as a test says, and keeps what it was asked.

It speaks the chat completions protocol, streamed, as far as Pi uses it. Answers are given in the
order in which they were planned; what comes when the plan is over is asked of a function. A request
that neither covers is refused and stands in `problems`, so that no test goes on by luck.
"""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias, cast

from pi_workflows.base.canonical import Json

# Far above what a slow machine needs; a test that gets here has hung.
DEADLINE_S = 30.0
MODEL_ID = "scripted"
_POLL_S = 0.02
_PATH = "/v1/chat/completions"

Record: TypeAlias = dict[str, Json]


class Hold:
    """A place in the middle of an answer where the model waits until it is told to go on."""

    def __init__(self) -> None:
        """Make a hold that no answer has reached yet."""
        self._reached = threading.Event()
        self._released = threading.Event()

    def await_reached(self) -> None:
        """Wait until an answer stands here: its first half is with Pi then."""
        assert self._reached.wait(DEADLINE_S), "no answer reached the hold"

    def release(self) -> None:
        """Let the answer go on."""
        self._released.set()

    def stand(self, is_over: Callable[[], bool]) -> None:
        """Wait here, as an answer.

        Args:
            is_over: Whether nobody waits for the answer any more.
        """
        self._reached.set()
        while not self._released.wait(_POLL_S) and not is_over():
            pass


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model calls."""

    name: str
    arguments: Record


@dataclass(frozen=True, slots=True)
class Says:
    """The model says a text, word by word, and then calls tools.

    Attributes:
        text: What it says; nothing when empty.
        calls: The tools that it calls in this one answer.
        hold: Where it waits after the first half of its words.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class Refuses:
    """The service refuses; Pi tries again after some statuses."""

    status: int
    message: str = "refused by the script"


@dataclass(frozen=True, slots=True)
class Breaks:
    """The connection ends in the middle of an answer."""

    text: str


Answer: TypeAlias = Says | Refuses | Breaks


@dataclass
class Exchange:
    """What the model was asked, and how far its answer came.

    Attributes:
        number: 1 for the first request.
        session_id: The session of Pi that asked.
        client: The address that asked.
        body: The whole request.
        ending: `open`, then `whole`, `refused`, `broken` (by the script) or `left` (by Pi).
    """

    number: int
    session_id: str
    client: str
    body: Record
    ending: str = "open"

    @property
    def messages(self) -> list[Record]:
        """What the model was shown, in order."""
        return records(self.body["messages"])

    @property
    def roles(self) -> list[str]:
        """Who said each of the messages."""
        return [str(message["role"]) for message in self.messages]

    @property
    def texts(self) -> list[str]:
        """The text of each message."""
        return [text_of(message.get("content")) for message in self.messages]

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the model may call."""
        functions = [each["function"] for each in records(self.body.get("tools", []))]
        return [str(each["name"]) for each in records(functions)]


def records(value: Json) -> list[Record]:
    """Return a list of objects as what it is."""
    assert isinstance(value, list), value
    found: list[Record] = []
    for each in value:
        assert isinstance(each, dict), each
        found.append(each)
    return found


def text_of(content: Json) -> str:
    """Return the text of a message's content, be it one text or blocks."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    return "".join(str(block["text"]) for block in records(content) if block["type"] == "text")


@dataclass
class Model:
    """The model and its server.

    Attributes:
        problems: Requests that no test planned; a fixture holds it to be empty.
    """

    problems: list[str] = field(default_factory=list[str])
    _exchanges: list[Exchange] = field(default_factory=list[Exchange])
    _plan: deque[Answer] = field(default_factory=deque[Answer])
    _respond: Callable[[Exchange], Answer] | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _closing: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    def open(self) -> None:
        """Listen on a free port of the loopback interface."""
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, self))
        serve = partial(self._server.serve_forever, poll_interval=_POLL_S)
        threading.Thread(target=serve, daemon=True).start()

    def close(self) -> None:
        """Stop listening; answers that hold go on to their end."""
        assert self._server is not None
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        return self._server.server_port

    def plan(self, *answers: Answer) -> None:
        """Add answers for the next requests, one for each, whichever session asks."""
        with self._changed:
            self._plan.extend(answers)

    def respond(self, by: Callable[[Exchange], Answer]) -> None:
        """Let a function answer what comes after the plan; it runs in the server's threads."""
        with self._changed:
            self._respond = by

    @property
    def exchanges(self) -> list[Exchange]:
        """Every request until now, in the order of their arrival."""
        with self._changed:
            return list(self._exchanges)

    def await_exchange(self, number: int, ending: str | None = None) -> Exchange:
        """Wait for a request.

        Args:
            number: Its number, 1 for the first.
            ending: How far its answer has to be; None for no matter how far.
        """
        deadline = time.monotonic() + DEADLINE_S
        with self._changed:
            while True:
                found = self._exchanges[number - 1 : number]
                if found and ending in {None, found[0].ending}:
                    return found[0]
                left = deadline - time.monotonic()
                assert left > 0, f"no request {number} that is {ending}: {self._exchanges}"
                self._changed.wait(left)

    def begin(self, session_id: str, client: str, body: Record) -> tuple[Exchange, Answer]:
        """Keep a request and return its answer, as the server."""
        with self._changed:
            exchange = Exchange(len(self._exchanges) + 1, session_id, client, body)
            self._exchanges.append(exchange)
            self._changed.notify_all()
            if self._plan:
                return exchange, self._plan.popleft()
            respond = self._respond
        if respond is None:
            self.problems.append(f"request {exchange.number} has no answer: {exchange.texts[-1]}")
            return exchange, Refuses(400, "the script has no answer")
        return exchange, respond(exchange)

    def end(self, exchange: Exchange, ending: str) -> None:
        """Keep how an answer ended, as the server."""
        with self._changed:
            exchange.ending = ending
            self._changed.notify_all()

    def is_over(self, connection: socket.socket) -> bool:
        """Whether nobody waits at the other end of a connection any more."""
        return self._closing.is_set() or _has_left(connection)


def _has_left(connection: socket.socket) -> bool:
    """Whether the other end has closed a connection: it says nothing while it waits."""
    readable, _, _ = select.select([connection], [], [], 0)
    try:
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


class _Server(ThreadingHTTPServer):
    """A server whose clients may be killed at any moment."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep silent: the exchange says that its client left."""


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def __init__(
        self, model: Model, request: socket.socket, client_address: tuple[str, int], server: _Server
    ) -> None:
        self._model = model
        super().__init__(request, client_address, server)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is declared
        """Write nothing: the exchanges are the log."""

    def do_GET(self) -> None:
        """Refuse: Pi has no reason to look for anything."""
        self._model.problems.append(f"GET {self.path}")
        self._refuse(Refuses(404))

    def do_POST(self) -> None:
        """Answer one request."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != _PATH:
            self._model.problems.append(f"POST {self.path}")
            self._refuse(Refuses(404))
            return
        exchange, answer = self._model.begin(
            str(self.headers["x-session-id"]),
            self.client_address[0],
            cast("Record", json.loads(body)),
        )
        try:
            ending = self._answer(exchange, answer)
        except OSError:
            self.close_connection = True
            ending = "left"
        self._model.end(exchange, ending)

    def _answer(self, exchange: Exchange, answer: Answer) -> str:
        """Send an answer and return how it ended."""
        if isinstance(answer, Refuses):
            self._refuse(answer)
            return "refused"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        words = re.findall(r"\S+\s*|\s+", answer.text)
        if isinstance(answer, Breaks):
            self._say(exchange, words)
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return "broken"
        half = (len(words) + 1) // 2
        self._say(exchange, words[:half])
        if answer.hold is not None:
            answer.hold.stand(lambda: self._model.is_over(self.connection))
            if _has_left(self.connection):
                self.close_connection = True
                return "left"
        self._say(exchange, words[half:])
        for delta in _calls(exchange, answer.calls):
            self._delta(exchange, delta)
        self._delta(exchange, {}, "tool_calls" if answer.calls else "stop")
        usage: Record = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        self._chunk(json.dumps({**_head(exchange), "choices": [], "usage": usage}))
        self._chunk("[DONE]")
        self.wfile.write(b"0\r\n\r\n")
        return "whole"

    def _refuse(self, answer: Refuses) -> None:
        """Send a status with its reason."""
        body = json.dumps({"error": {"message": answer.message}}).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _say(self, exchange: Exchange, words: list[str]) -> None:
        """Send a text word by word."""
        for word in words:
            self._delta(exchange, {"role": "assistant", "content": word})

    def _delta(self, exchange: Exchange, delta: Record, finish: str | None = None) -> None:
        """Send a part of an answer."""
        choice: Record = {"index": 0, "delta": delta, "finish_reason": finish}
        self._chunk(json.dumps({**_head(exchange), "choices": [choice]}))

    def _chunk(self, data: str) -> None:
        """Send one event of the stream."""
        event = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))


def _head(exchange: Exchange) -> Record:
    """Return what every part of an answer carries."""
    return {
        "id": f"answer-{exchange.number}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": MODEL_ID,
    }


def _calls(exchange: Exchange, calls: tuple[Call, ...]) -> Iterator[Record]:
    """Yield the parts that call tools: a head, then the arguments in two pieces."""
    for index, call in enumerate(calls):
        arguments = json.dumps(call.arguments)
        half = len(arguments) // 2
        function: Record = {"name": call.name, "arguments": arguments[:half]}
        name = f"call_{exchange.number}_{index}"
        head: Record = {"index": index, "id": name, "type": "function", "function": function}
        yield {"tool_calls": [head]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]}
