"""Shell steps: real commands in groups of their own, of which nothing is ever left."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.protocol.content import JsonRef
from pi_workflows.protocol.proposals import (
    EffectReservation,
    FinishAttempt,
    FinishRun,
    ReserveEffect,
    SettleEffect,
    Update,
)
from pi_workflows.protocol.runner import Child
from tests.runner.peer import Peer, launch_of, of_kind, processes_with

pytestmark = pytest.mark.slow

SHELL = """
late = compute(lambda ctx: ctx.results["run"].outcome)
run = shell(COMMAND, effect=idempotent_effect("test.run"), OPTIONS)
workflow = define_workflow("shelled", input=Input, start="run",
    nodes={"run": run, **({"late": late} if ROUTED else {})},
    edges=[switch("run", on="$result.outcome", cases={"timed_out": "late", "ok": "late"})]
    if ROUTED else [])
"""


def shelled(command: str, options: str = "", *, routed: bool = False) -> str:
    """Return a workflow with one shell step."""
    text = SHELL.replace("COMMAND", command).replace("OPTIONS", options)
    return text.replace("ROUTED", str(routed))


def python(code: str, options: str = "", *, routed: bool = False) -> str:
    """Return a workflow whose shell step runs Python code."""
    return shelled(f"Command([sys.executable, '-c', {code!r}])", options, routed=routed)


def result(peer: Peer) -> dict[str, Json]:
    """Return the result that the run's one effect was settled with."""
    (settle,) = of_kind(peer.commands, SettleEffect)
    value = peer.value(settle.result)
    assert isinstance(value, dict)
    return value


def test_a_commands_result_is_its_effects_result_and_the_output(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Exit code, outputs and directory are stored whole at the effect, in short at the attempt."""
    path = author(python("import os,sys; print(os.getcwd()); print('b', file=sys.stderr)"))
    peer = start()
    peer.begin(launch_of(path, {}))
    peer.serve()
    stored = result(peer)
    assert stored["exitCode"] == 0
    assert stored["stdout"] == f"{path.parent}\n"
    assert stored["stderr"] == "b\n"
    assert stored["cwd"] == str(path.parent)
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == stored
    (finish,) = of_kind(peer.commands, FinishAttempt)
    assert finish.receipt is not None
    assert set(finish.receipt) == {"command", "cwd", "exitCode", "durationMs"}
    (reserve,) = of_kind(peer.commands, ReserveEffect)
    assert peer.value(reserve.request) == {"command": stored["command"], "cwd": str(path.parent)}
    assert peer.wait() == 0, peer.printed()


def test_nothing_executes_before_the_server_has_recorded_it(
    author: Callable[[str], Path], start: Callable[[], Peer], tmp_path: Path
) -> None:
    """The process exists, in a group of its own, and waits until it is registered."""
    mark = tmp_path / "mark"
    peer = start()
    peer.begin(launch_of(author(python(f"open({str(mark)!r}, 'w')")), {}))
    while True:
        message = peer.next_or_end()
        if isinstance(message, Child):
            break
        assert message is not None
        peer.accept(message)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert message.state == "starting"
    assert os.getpgid(message.pid) == message.pid == message.process_group
    assert os.getsid(message.pid) == peer.pid
    stat = Path(f"/proc/{message.pid}/stat").read_text().rpartition(")")[2].split()
    assert stat[19] == message.start_identity
    assert not mark.exists()
    peer.send(message.model_copy(update={"state": "registered"}))
    peer.serve()
    assert mark.exists()
    assert [child.state for child in peer.children] == ["starting", "ended"]


def test_a_command_inherits_no_descriptor_and_no_ignored_signal(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """It has its three standard descriptors, and signals as a shell would give them."""
    peer = start()
    command = "Command(['sh', '-c', 'ls /proc/self/fd; grep SigIgn /proc/self/status'])"
    peer.begin(launch_of(author(shelled(command)), {}))
    peer.serve()
    *descriptors, ignored = str(result(peer)["stdout"]).split("\n")[:-1]
    # `ls` itself opens the directory as the fourth.
    assert descriptors == ["0", "1", "2", "3"]
    # Signal 32 is the C library's own, which `posix_spawn` of this test leaves ignored.
    assert int(ignored.split()[1], 16) & 0x7FFFFFFF == 0


def test_a_command_sees_the_authors_variables_and_its_input(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Variables are added and taken away, what marks our processes stays, and stdin is fed."""
    code = (
        "import os,sys; print(os.environ['ADDED'], 'HOME' in os.environ,"
        " 'PI_WORKFLOWS_WORKER' in os.environ, len(sys.stdin.read()))"
    )
    command = (
        f"Command([sys.executable, '-c', {code!r}], stdin='x' * 200_000,"
        " env={'ADDED': '1', 'HOME': None, 'PI_WORKFLOWS_WORKER': None})"
    )
    peer = start()
    peer.begin(launch_of(author(shelled(command)), {}))
    peer.serve()
    assert result(peer)["stdout"] == "1 False True 200000\n"
    (reserve,) = of_kind(peer.commands, ReserveEffect)
    asked = peer.value(reserve.request)
    assert isinstance(asked, dict)
    assert set(asked) == {"command", "cwd", "stdinSha256"}
    assert asked["stdinSha256"] == hashlib.sha256(b"x" * 200_000).hexdigest()


def test_an_exit_code_fails_the_node_after_the_effect_was_applied(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The result stays; the failure shows the end of what the command complained."""
    peer = start()
    code = "import sys; print('bad luck', file=sys.stderr); sys.exit(3)"
    peer.begin(launch_of(author(python(code)), {}))
    peer.serve()
    (settle,) = of_kind(peer.commands, SettleEffect)
    assert settle.outcome == "applied"
    assert result(peer)["exitCode"] == 3
    (finish,) = of_kind(peer.commands, FinishAttempt)
    assert finish.error is not None
    assert finish.error.code == "commandFailed"
    assert "exit code 3: bad luck" in finish.error.message
    assert finish.receipt is not None
    assert finish.receipt["exitCode"] == 3


def test_an_allowed_exit_code_is_a_result_like_any_other(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """`parse` makes the output of it, typed."""
    options = "allow_non_zero_exit=True, parse=lambda r: {'code': r.exit_code, 'said': r.stdout}"
    peer = start()
    peer.begin(launch_of(author(python("import sys; print(1); sys.exit(3)", options)), {}))
    peer.serve()
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == {"code": 3, "said": "1\n"}


def test_a_failing_parse_fails_the_node_but_not_the_effect(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """What happened has happened: only the node fails."""
    peer = start()
    peer.begin(launch_of(author(python("pass", "parse=lambda r: 1 / 0")), {}))
    peer.serve()
    assert of_kind(peer.commands, SettleEffect)[0].outcome == "applied"
    (finish,) = of_kind(peer.commands, FinishAttempt)
    assert finish.error is not None
    assert "ZeroDivisionError" in finish.error.message


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("Command(['no-such-program-here'])", "no-such-program-here: no such file"),
        ("Command(['true'], cwd='missing')", "missing: no such file or directory"),
        ("Command([__file__])", "sample_workflow.py: permission denied"),
    ],
)
def test_a_command_that_cannot_be_executed_rejects_the_effect(
    author: Callable[[str], Path], start: Callable[[], Peer], command: str, words: str
) -> None:
    """Nothing ran, and the failure names what could not."""
    peer = start()
    peer.begin(launch_of(author(shelled(command)), {}))
    peer.serve()
    assert of_kind(peer.commands, SettleEffect)[0].outcome == "rejected"
    (finish,) = of_kind(peer.commands, FinishAttempt)
    assert finish.error is not None
    assert finish.error.code == "commandNotExecuted"
    assert words in finish.error.message


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("lambda ctx: 'ls -l'", "returned str, not a Command"),
        ("lambda ctx: Command([])", "argv holds at least the program"),
        ("lambda ctx: Command(['cat'], stdin=chr(0xD800))", "stdin holds half a surrogate pair"),
        ("lambda ctx: Command(['env'], env={'A': chr(0xD800)})", "env maps names"),
        ("lambda ctx: Command(['pwd'], cwd='a' + chr(0))", "cwd holds no NUL"),
    ],
)
def test_a_command_that_is_none_reserves_nothing(
    author: Callable[[str], Path], start: Callable[[], Peer], command: str, words: str
) -> None:
    """The node fails before its effect has an identity."""
    peer = start()
    peer.begin(launch_of(author(shelled(command)), {}))
    peer.serve()
    assert not of_kind(peer.commands, ReserveEffect)
    (finish,) = of_kind(peer.commands, FinishAttempt)
    assert finish.error is not None
    assert finish.error.code == "commandInvalid"
    assert words in finish.error.message


# A tree: a child in the group, a grandchild, all deaf to SIGTERM.
TREE = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "if os.fork() == 0:\n"
    "    os.fork()\n"
    "os.write(1, b'up\\n')\n"
    "time.sleep(600)\n"
)


def test_a_command_over_its_time_is_killed_with_its_tree(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The effect may be repeated, what the command wrote is kept, and nothing is left."""
    options = "timeout=timedelta(milliseconds=700)"
    peer = start()
    peer.begin(launch_of(author(python(TREE, options, routed=True)), {}))
    peer.serve()
    settle = of_kind(peer.commands, SettleEffect)[0]
    assert settle.outcome == "uncertain"
    finish = of_kind(peer.commands, FinishAttempt)[0]
    assert finish.outcome == "timed_out"
    assert finish.receipt is not None
    assert (finish.receipt["signal"], finish.receipt["exitCode"]) == ("SIGKILL", None)
    assert sorted(str(finish.receipt["stdout"])) == sorted("up\n" * 3)
    assert peer.value(settle.result) == finish.receipt
    assert settle.error == finish.error
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == "timed_out"
    assert peer.wait() == 0
    assert not processes_with(peer.cookie)


def test_what_a_command_leaves_in_the_background_ends_with_it(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A step is over when its command is, whatever that left running with its outputs open."""
    peer = start()
    peer.begin(launch_of(author(shelled("Command(['sh', '-c', 'sleep 600 & echo done'])")), {}))
    peer.serve()
    assert result(peer)["stdout"] == "done\n"
    assert not processes_with(peer.cookie)


def test_outputs_are_bounded_in_characters(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A million characters of each output are kept, the rest is read and dropped."""
    code = "import sys; sys.stdout.write('é' * 1_500_000); sys.stderr.write('b' * 1_000_000)"
    peer = start()
    peer.begin(launch_of(author(python(code)), {}))
    peer.serve()
    stored = result(peer)
    assert stored["stdout"] == "é" * 1_000_000
    assert stored["stdoutTruncated"] is True
    assert stored["stderr"] == "b" * 1_000_000
    assert stored["stderrTruncated"] is False


def test_outputs_that_grow_in_json_still_fit_a_value(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Control characters take six bytes each in JSON: more of them is cut, nothing fails."""
    code = (
        "import sys; sys.stdout.write(chr(1) * 1_000_000); sys.stderr.buffer.write(b'\\xff' * 1000)"
    )
    peer = start()
    peer.begin(launch_of(author(python(code)), {}))
    peer.serve()
    stored = result(peer)
    assert stored["stdoutTruncated"] is True
    assert 600_000 < len(str(stored["stdout"])) < 1_000_000
    assert stored["stderr"] == "\ufffd" * 1000
    assert of_kind(peer.commands, FinishRun)[0].outcome == "completed"


READER = """
def read(line):
    if line.text == "boom":
        raise ValueError("cannot read this")
    if line.text.startswith("at "):
        return Progress(completed=int(line.text[3:]), total=10, unit="files")
"""


def test_lines_become_updates_while_the_command_runs(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The author's reader sees whole lines; its updates are committed before the command ends."""
    code = "import time\nfor n in (1, 2, 3):\n    print('at', n, flush=True); time.sleep(0.2)"
    peer = start()
    peer.begin(launch_of(author(READER + python(code, "updates=read")), {}))
    commands = peer.serve()
    updates = of_kind(commands, Update)
    assert [update.data["completed"] for update in updates] == [1, 2, 3]
    assert {(update.type, update.key) for update in updates} == {("progress", "node:run")}
    assert commands.index(updates[-1]) < commands.index(of_kind(commands, SettleEffect)[0])


def test_a_reader_of_lines_that_fails_costs_only_the_updates(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The command goes on and its result counts; the server's log says why there is no progress."""
    peer = start()
    peer.begin(launch_of(author(READER + python("print('boom')", "updates=read")), {}))
    commands = peer.serve()
    assert of_kind(commands, FinishRun)[0].outcome == "completed"
    assert any("cannot read this" in line for line in peer.logs)


def test_a_reader_of_lines_that_returns_something_else_costs_only_the_updates(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """So does one whose updates are none."""
    peer = start()
    options = "updates=lambda line: line.text"
    peer.begin(launch_of(author(python("print('boom')", options)), {}))
    commands = peer.serve()
    assert of_kind(commands, FinishRun)[0].outcome == "completed"
    assert not of_kind(commands, Update)
    assert any("not str" in line for line in peer.logs)


PARSING = "parse=lambda r: r.stdout.strip()"
STORED = {
    "command": ["git", "status"],
    "cwd": "/somewhere",
    "exitCode": 0,
    "signal": None,
    "durationMs": 5,
    "stdout": "kept\n",
    "stderr": "",
}


@pytest.mark.parametrize(
    ("stored", "outcome", "output"),
    [
        (STORED, "ok", "kept"),
        ({**STORED, "exitCode": 1}, "failed", None),
        (
            {"confirmed": True, "evidence": "I saw it"},
            "ok",
            {"confirmed": True, "evidence": "I saw it"},
        ),
    ],
)
def test_an_adopted_result_is_judged_and_parsed_again(
    author: Callable[[str], Path],
    start: Callable[[], Peer],
    stored: Json,
    outcome: str,
    output: Json,
) -> None:
    """The exit-code rule and `parse` see the stored result; a confirmation is the output."""
    peer = start()
    peer.effects["test.run"] = EffectReservation(
        effect_id="effect", status="applied", attempt_count=1, result=JsonRef(value=stored)
    )
    peer.begin(launch_of(author(python("print('new')", PARSING)), {}))
    peer.serve()
    assert not peer.children
    (finish,) = of_kind(peer.commands, FinishAttempt)
    assert finish.outcome == outcome
    if output is None:
        assert finish.error is not None
        assert "the command did not run" in finish.error.message
    else:
        assert peer.value(finish.output) == output
