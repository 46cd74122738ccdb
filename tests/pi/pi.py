"""A real Pi process in RPC mode: commands go in, records come out, and it can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeAlias, cast

from pi_workflows.base.canonical import Json
from tests.pi.home import PiHome
from tests.pi.model import DEADLINE_S, Record, records, text_of
from tests.pi.session_file import SessionFile

Match: TypeAlias = Callable[[Record], bool]

_READ_BYTES = 65_536
_SHOWN_CHARS = 300


def like(**members: Json) -> Match:
    """Return what is true of records that have these members, with these values."""
    return lambda record: all(
        name in record and record[name] == value for name, value in members.items()
    )


def asks_ui(method: str, **members: Json) -> Match:
    """Return what is true of requests to the user interface, such as `setWidget`."""
    return like(type="extension_ui_request", method=method, **members)


class Pi:
    """One process.

    Attributes:
        home: Where it lives.
        process: The process, which leads its own group.
    """

    def __init__(self, home: PiHome, *arguments: str, session: Path | None = None) -> None:
        """Start Pi.

        Args:
            home: Where it lives.
            arguments: What follows `pi --mode rpc`.
            session: The file of a session to resume; a new one when None.
        """
        self.home = home
        resumed = [] if session is None else ["--session", str(session)]
        with home.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [str(home.place.bin / "pi"), "--mode", "rpc", *resumed, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=home.project,
                env=home.environment(),
                start_new_session=True,
            )
        self._records: list[Record] = []
        self._has_ended = False
        self._changed = threading.Condition()
        self._commands = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def records(self) -> list[Record]:
        """Everything that it has said until now, in order."""
        with self._changed:
            return list(self._records)

    def mark(self) -> int:
        """Return how many records there are: what comes later stands from here on."""
        with self._changed:
            return len(self._records)

    def since(self, mark: int) -> list[Record]:
        """Return the records after a mark."""
        return self.records[mark:]

    def await_record(self, match: Match, since: int = 0) -> Record:
        """Wait for the first record that matches, and return it.

        Args:
            match: What must be true of it.
            since: A mark; earlier records do not count.

        Raises:
            AssertionError: It did not come, or Pi has ended.
        """
        deadline = time.monotonic() + DEADLINE_S
        at = since
        with self._changed:
            while True:
                for record in self._records[at:]:
                    if match(record):
                        return record
                at = max(at, len(self._records))
                left = deadline - time.monotonic()
                assert left > 0, f"the record did not come{self._tail()}"
                assert not self._has_ended, f"Pi ended before the record came{self._tail()}"
                self._changed.wait(left)

    def send(self, record: Record) -> None:
        """Write one record to Pi."""
        # Raw: a command that was cut by a kill is not written again when the pipe is closed.
        os.write(self._stdin.fileno(), json.dumps(record).encode() + b"\n")

    def command(self, kind: str, **members: Json) -> Record:
        """Send a command and return its whole response, be it a success or not."""
        self._commands += 1
        name = f"command-{self._commands}"
        mark = self.mark()
        self.send({"id": name, "type": kind, **members})
        return self.await_record(like(type="response", id=name), mark)

    def ask(self, kind: str, **members: Json) -> Record:
        """Send a command that must succeed, and return the data of its response."""
        response = self.command(kind, **members)
        assert response["success"] is True, response
        data = response.get("data", {})
        assert isinstance(data, dict), response
        return data

    def prompt(self, text: str) -> list[Record]:
        """Say something as the user, wait until Pi has nothing left to do, return what it said."""
        mark = self.mark()
        if self.ask("prompt", message=text)["disposition"] == "started":
            self.await_record(like(type="agent_settled"), mark)
        return self.since(mark)

    def start_prompt(self, text: str) -> int:
        """Say something as the user and return the mark before it, without waiting for the end."""
        mark = self.mark()
        assert self.ask("prompt", message=text)["disposition"] == "started"
        return mark

    def probe(self, **request: Json) -> None:
        """Let the probe do something, and wait until it is done; `do` says what."""
        text = f"/probe {json.dumps(request)}"
        assert self.ask("prompt", message=text) == {"disposition": "handled"}

    def reply(self, request: Record, **members: Json) -> None:
        """Answer a dialog, with `value`, `confirmed` or `cancelled`."""
        self.send({"type": "extension_ui_response", "id": request["id"], **members})

    def session_id(self) -> str:
        """Return the identity of the session."""
        return str(self.ask("get_state")["sessionId"])

    def session_file(self) -> SessionFile:
        """Return the file of the session, which is there after the first message."""
        return SessionFile(Path(str(self.ask("get_state")["sessionFile"])))

    def entries(self) -> list[Record]:
        """Return the entries of the session as Pi has them."""
        return records(self.ask("get_entries")["entries"])

    def close(self) -> int:
        """Let Pi end in order and return its exit code."""
        self._stdin.close()
        return self._await_end()

    def terminate(self) -> int:
        """Ask Pi to end with a signal and return its exit code."""
        self.process.terminate()
        return self._await_end()

    def kill(self) -> None:
        """Kill Pi, and all that it started in its group, as a power cut would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self._await_end()

    def _await_end(self) -> int:
        """Wait until the process is gone and all that it said is read."""
        code = self.process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)
        assert not self._reader.is_alive(), "somebody else still holds Pi's output"
        self._stdin.close()
        self._stdout.close()
        return code

    @property
    def _stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def _read(self) -> None:
        """Keep every record; only a line feed ends one, whatever a text in it holds."""
        rest = b""
        while data := os.read(self._stdout.fileno(), _READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            found = [cast("Record", json.loads(line)) for line in lines if line]
            with self._changed:
                self._records.extend(found)
                self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _tail(self) -> str:
        """Return the last records and the errors, for people."""
        last = [json.dumps(record)[:_SHOWN_CHARS] for record in self._records[-8:]]
        errors = self.home.errors.read_text(encoding="utf-8")[-2_000:]
        return "\n".join(["; the last records:", *last, "standard error:", errors])


def said(found: list[Record]) -> list[str]:
    """Return the texts of the model's finished messages among records."""
    messages = records([each["message"] for each in found if each["type"] == "message_end"])
    return [text_of(each["content"]) for each in messages if each["role"] == "assistant"]
