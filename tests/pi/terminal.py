"""A real Pi in a terminal: what a person sees and types."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

from tests.pi.home import PiHome
from tests.pi.model import DEADLINE_S

_POLL_S = 0.03
_SHOWN_CHARS = 60


class Terminal:
    """One terminal with one Pi in it, under its own tmux server.

    Attributes:
        home: Where Pi lives.
    """

    def __init__(self, home: PiHome, *arguments: str, columns: int = 100, rows: int = 40) -> None:
        """Start Pi in a new terminal.

        Args:
            home: Where Pi lives.
            arguments: What follows `pi`.
            columns: The width of the terminal.
            rows: Its height.
        """
        self.home = home
        self._socket = str(home.root / "tmux")
        size = ["-x", str(columns), "-y", str(rows)]
        # A terminal stays when its program has ended: the last screen tells why.
        stay = ["set-option", "-g", "remain-on-exit", "on", ";"]
        # Without them Pi warns that it cannot tell some keys apart.
        keys = ["set-option", "-s", "extended-keys", "on", ";"]
        command = [str(home.place.bin / "pi"), *arguments]
        self._tmux(
            *["-f", os.devnull, "start-server", ";", *stay, *keys],
            *["new-session", "-d", *size, "-c", str(home.project), *command],
        )

    def _tmux(self, *arguments: str) -> str:
        """Run a command of tmux and return what it prints."""
        done = subprocess.run(
            ["tmux", "-S", self._socket, *arguments],
            env=self.home.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def screen(self) -> str:
        """Return what the terminal shows, without colours."""
        return self._tmux("capture-pane", "-p")

    def await_screen(self, is_there: Callable[[str], bool], what: str) -> str:
        """Wait until the terminal shows something, and return the whole screen.

        Args:
            is_there: Whether a screen is as wanted.
            what: What is waited for, for people.
        """
        deadline = time.monotonic() + DEADLINE_S
        while not is_there(shown := self.screen()):
            assert time.monotonic() < deadline, f"waited too long for {what}:\n{shown}"
            time.sleep(_POLL_S)
        return shown

    def await_text(self, text: str) -> str:
        """Wait until the terminal shows a text, and return the whole screen."""
        return self.await_screen(lambda shown: text in shown, repr(text))

    def write(self, text: str) -> None:
        """Type a text, without ending the line."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by the names that tmux gives them, such as `Enter`, `Escape` or `C-c`."""
        self._tmux("send-keys", *keys)

    def send_bytes(self, data: bytes) -> None:
        """Send what a terminal sends for a key that tmux has no name for."""
        self._tmux("send-keys", "-H", *(f"{byte:02x}" for byte in data))

    def say(self, text: str) -> None:
        """Type a line and end it, once the editor shows its end, in however many rows."""
        end = "".join(text.split())[-_SHOWN_CHARS:]
        self.write(text)
        # Pi takes a line end that comes with text for a part of what was pasted.
        self.await_screen(lambda shown: end in "".join(shown.split()), repr(text))
        self.press("Enter")

    @property
    def pid(self) -> int:
        """The process that the terminal started: Pi itself."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    @property
    def is_alive(self) -> bool:
        """Whether Pi has not ended."""
        return self._tmux("display-message", "-p", "#{pane_dead}").strip() == "0"

    def kill_pi(self) -> None:
        """Kill Pi as a power cut would; the terminal stays, with what it showed."""
        os.kill(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + DEADLINE_S
        while self.is_alive:
            assert time.monotonic() < deadline, "Pi outlives its kill"
            time.sleep(_POLL_S)

    def close(self) -> None:
        """End Pi, if it has not ended, and the terminal."""
        if self.is_alive:
            self.kill_pi()
        self._tmux("kill-server")
