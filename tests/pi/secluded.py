"""A program that talks with Pi where nothing but the loopback interface exists, and counts.

It is started in a network namespace of its own. The kernel counts there every attempt to reach an
address without a route, and every connection or datagram that nobody on the loopback interface
takes. A line of JSON on standard output has the counts after the conversation, and once more after
one attempt of each kind that this program makes itself: they show that the counters count.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.pi.home import PiHome, find_pi
from tests.pi.model import Call, Model, Says
from tests.pi.pi import Pi, said
from tests.pi.terminal import Terminal

# Kept for documentation (RFC 5737, RFC 3849): no route leads there, with or without a network.
_NOWHERE = ("192.0.2.1", 443)
_NOWHERE_6 = ("2001:db8::1", 443)
_NOBODY = ("127.0.0.1", 9)


def attempts() -> dict[str, int]:
    """Return how often somebody in this namespace spoke to no one."""
    counted: dict[str, int] = {}
    lines = Path("/proc/net/snmp").read_text(encoding="ascii").splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        group, *members = names.split()
        counted.update(
            (f"{group}{name}", int(value))
            for name, value in zip(members, values.split()[1:], strict=True)
        )
    for line in Path("/proc/net/snmp6").read_text(encoding="ascii").splitlines():
        name, value = line.split()
        counted[name] = int(value)
    wanted = ("Ip:OutNoRoutes", "Ip6OutNoRoutes", "Tcp:AttemptFails", "Udp:NoPorts")
    return {name: counted[name] for name in wanted}


def converse(root: Path) -> None:
    """Talk with a Pi in RPC mode, then with one in a terminal."""
    with ExitStack() as stack:
        model = Model()
        model.open()
        stack.callback(model.close)
        model.plan(Says("", (Call("probe", {"text": "x"}),)), Says("Alone."), Says("Still alone."))
        home = PiHome(root, find_pi(), model.port)
        home.make()
        pi = Pi(home)
        stack.callback(pi.kill)
        assert said(pi.prompt("who is there")) == ["", "Alone."]
        assert pi.close() == 0
        terminal = Terminal(home)
        stack.callback(terminal.close)
        terminal.await_text("scripted")
        terminal.say("and now")
        terminal.await_text("Still alone.")
        assert model.problems == []


def speak_to_no_one() -> None:
    """Make one attempt of each kind."""
    for family, kind, address in (
        (socket.AF_INET, socket.SOCK_STREAM, _NOWHERE),
        (socket.AF_INET6, socket.SOCK_STREAM, _NOWHERE_6),
        (socket.AF_INET, socket.SOCK_STREAM, _NOBODY),
        (socket.AF_INET, socket.SOCK_DGRAM, _NOBODY),
    ):
        with socket.socket(family, kind) as made, suppress(OSError):
            made.connect(address)
            made.send(b"?")


def main() -> None:
    """Run the conversation and print the counts."""
    with tempfile.TemporaryDirectory(prefix="pi-") as directory:
        converse(Path(directory).resolve())
    conversation = attempts()
    speak_to_no_one()
    sys.stdout.write(json.dumps({"conversation": conversation, "control": attempts()}) + "\n")


if __name__ == "__main__":
    main()
