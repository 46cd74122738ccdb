"""A run survives SIGKILL of its server and its runners, whenever they come."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome, Unavailable
from tests.process.installation import Installation, await_true, text_at

STEPS = 30
KILLS = 20
SEED = 20_261_130

THIRTY_STEPS = """
from pi_workflows import Command, compute, define_workflow, edge, idempotent_effect, shell
from pydantic import BaseModel

class Input(BaseModel):
    file: str

def step(number):
    script = f'echo {number} >> "$1"; sleep 0.2; echo {number}'
    return shell(
        lambda ctx: Command(["sh", "-c", script, "sh", ctx.input.file]),
        effect=idempotent_effect("file.append"),
        parse=lambda result: int(result.stdout),
    )

nodes = {f"s{n}": step(n) for n in range(STEPS)}
names = list(nodes)
workflow = define_workflow(
    name="thirty", input=Input, start="s0", nodes=nodes,
    edges=[edge(a, b) for a, b in zip(names, names[1:])],
)
""".replace("STEPS", str(STEPS))

GATE = """
from pi_workflows import checkpoint, define_workflow
from pydantic import BaseModel

class Input(BaseModel):
    pass

workflow = define_workflow(
    name="gate", input=Input, start="ask", nodes={"ask": checkpoint("Go on?")}, edges=[],
)
"""


class Acknowledged:
    """Commands whose receipts arrived, to be asked for again."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._receipts: dict[str, tuple[str, Json, int | None]] = {}

    def send(self, operation: str, key: str) -> None:
        """Send a command; when its receipt arrives, it must never be lost."""
        try:
            reply = self._installation.request(operation, run_id="gate", key=key)
        except Unavailable:
            return
        assert reply.is_done, (key, reply)
        self._receipts[key] = (operation, reply.receipt, reply.revision)

    def assert_all_present(self) -> int:
        """Send every acknowledged command again: each is adopted with the same receipt."""
        for key, (operation, receipt, revision) in self._receipts.items():
            again = self._installation.request(operation, run_id="gate", key=key)
            assert (again.outcome, again.receipt, again.revision) == (
                Outcome.ADOPTED,
                receipt,
                revision,
            )
        return len(self._receipts)


@pytest.mark.slow
def test_a_run_survives_twenty_kills(
    installation: Installation, record_property: Callable[[str, object], None]
) -> None:
    """Every step's result counts once, every receipt stays, and nothing is left over.

    The file may hold a line twice after a kill: the run holds one applied effect and one output a
    step. A run that was parked because its runners died without progress is resumed and counted.
    """
    chance = random.Random(SEED)  # noqa: S311 - which moment, not a secret
    file = installation.root / "lines"
    thirty = installation.write("thirty", THIRTY_STEPS)
    gate = installation.write("gate", GATE)
    installation.start()
    assert installation.run(gate, "gate").is_done
    installation.await_status("gate", "waiting")
    assert installation.run(thirty, "thirty", {"file": str(file)}).is_done
    acknowledged = Acknowledged(installation)
    kills, resumed = {"server": 0, "runner": 0, "both": 0}, 0
    while sum(kills.values()) < KILLS:
        time.sleep(chance.uniform(0.05, 0.9))
        target = chance.choice(sorted(kills))
        assert installation.status("thirty") != "completed", "its steps are too quick"
        for number in range(2):
            key = f"{sum(kills.values())}-{number}"
            acknowledged.send(("run.pause", "run.resume")[number], key)
        resumed += resume_if_parked(installation, sum(kills.values()))
        kills[target] += 1
        if target != "runner":
            installation.kill_server()
        if target != "server":
            installation.kill_runners()
        if target != "runner":
            installation.start()

    def is_over() -> bool:
        nonlocal resumed
        resumed += resume_if_parked(installation, resumed + 1_000)
        return installation.status("thirty") == "completed"

    await_true(is_over, "the run to complete")
    total = acknowledged.assert_all_present()
    assert total >= KILLS
    assert_counted_once(installation, file)
    installation.stop()
    installation.assert_sound()
    record_property(
        "twenty kills", f"seed {SEED}, {kills}, resumed {resumed}, {total} receipts adopted"
    )


def resume_if_parked(installation: Installation, number: int) -> int:
    """Resume the run when it stands still because its runners died; return how often."""
    queue = installation.view("thirty")["queue"]
    assert isinstance(queue, dict)
    if queue["errorCode"] != "runnerNoProgress":
        return 0
    installation.request("run.resume", run_id="thirty", key=f"resume-{number}").done()
    return 1


def assert_counted_once(installation: Installation, file: Path) -> None:
    """Each step has one output and one applied effect; the file has every line."""
    view = installation.view("thirty")
    state = view["state"]
    assert isinstance(state, dict)
    assert state["outputs"] == {f"s{number}": number for number in range(STEPS)}
    assert view["stepTotal"] == STEPS
    effects = installation.request("effect.list", {"runId": "thirty", "status": "applied"})
    assert isinstance(effects.receipt, dict)
    assert effects.receipt["total"] == STEPS
    assert {int(line) for line in file.read_text().split()} == set(range(STEPS))


MANUAL = """
import time
from collections.abc import Callable
from pathlib import Path
from pi_workflows import action, compute, define_workflow, edge, manual_effect, switch
from pydantic import BaseModel

class Input(BaseModel):
    directory: str

@action(effect=manual_effect("letter.send"))
def send(ctx):
    directory = Path(ctx.input.directory)
    with (directory / "sent").open("a") as file:
        file.write("x")
    while not (directory / "delivered").exists() and not ctx.cancel.wait(0.02):
        pass
    return {"sent": True}

@compute
def done(ctx):
    return ctx.outputs.get("send")

@compute
def refused(ctx):
    return "refused"

workflow = define_workflow(
    name="manual", input=Input, start="send",
    nodes={"send": send, "done": done, "refused": refused},
    edges=[switch("send", on="$result.outcome", cases={"ok": "done", "failed": "refused"})],
)
"""


@pytest.mark.slow
@pytest.mark.parametrize("verdict", ["confirm", "retry", "reject"])
def test_a_manual_effect_is_never_repeated_in_silence(
    installation: Installation, verdict: str
) -> None:
    """Killed in the middle it parks `effectAmbiguous`; what a person says leads on as it should."""
    file = installation.write("manual", MANUAL)
    installation.start()
    run_input: Json = {"directory": str(installation.root)}
    assert installation.run(file, "manual", run_input).is_done
    sent = installation.root / "sent"
    await_true(sent.exists, "the effect to begin")
    installation.kill_server()
    installation.kill_runners()
    installation.start()
    installation.await_status("manual", "ambiguous")
    assert sent.read_text() == "x"
    resumed = installation.request("run.resume", run_id="manual")
    assert resumed.refusal is not None
    assert resumed.refusal.code == "effectAmbiguous"
    (installation.root / "delivered").touch()
    resolve(installation, verdict)
    installation.await_status("manual", "completed")
    state = installation.view("manual")["state"]
    assert isinstance(state, dict)
    outcome = {
        "confirm": ({"confirmed": True, "evidence": "seen"}, "x"),
        "retry": ({"sent": True}, "xx"),
        "reject": ("refused", "x"),
    }[verdict]
    assert (state["finalOutput"], sent.read_text()) == outcome
    installation.stop()
    installation.assert_sound()


def resolve(installation: Installation, verdict: str) -> None:
    """Say what became of the run's ambiguous effect."""
    listed = installation.request("effect.list", {"runId": "manual"}).receipt
    assert isinstance(listed, dict)
    assert isinstance(listed["items"], list)
    (item,) = listed["items"]
    payload: dict[str, Json] = {
        "effectId": text_at(item, "effectId"),
        "attemptNumber": 1,
        "action": verdict,
        "evidence": "seen",
    }
    installation.request("effect.resolve", payload).done()
