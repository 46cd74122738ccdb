"""A built-in under a real server that is killed while the run waits."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from tests.process.installation import Installation, await_true

NIGHTLY = """
from pi_workflows import compute, define_workflow, edge, include
from pydantic import BaseModel

class Input(BaseModel):
    file: str

workflow = define_workflow(
    name="nightly", input=Input, start="ready", nodes={"report": compute(
        lambda ctx: ctx.outputs["ready"])},
    includes={"ready": include("builtin:monitor", contract_id="pi-workflows.monitor.v1",
        input=lambda ctx: {"command": ["test", "-e", ctx.input.file], "interval_seconds": 1})},
    edges=[edge("ready.met", "report"), edge("ready.over", "report")],
)
"""


@pytest.mark.slow
def test_an_included_monitor_waits_through_a_crash_of_its_server(
    installation: Installation,
) -> None:
    """No process waits with it; the next server makes the next check when it is due."""
    file = installation.write("nightly", NIGHTLY)
    flag = installation.root / "flag"
    installation.start()
    installation.run(file, "nightly-1", {"file": str(flag)}).done()
    await_true(lambda: _checks(installation) > 0 and not installation.runners(), "the run to rest")
    installation.kill_server()
    flag.touch()
    installation.start()
    installation.await_status("nightly-1", "completed")
    view = installation.view("nightly-1")
    state = view["state"]
    assert isinstance(state, dict)
    output = state["finalOutput"]
    assert isinstance(output, dict)
    report = output["output"]
    assert isinstance(report, dict)
    assert (output["exit"], report["met"], report["checks"]) == ("met", True, 2)
    installation.stop()
    installation.assert_sound()


def _checks(installation: Installation) -> int:
    """Return how many checks were judged."""
    payload: Json = {"kind": "trace"}
    receipt = installation.request("view.page", payload, run_id="nightly-1").done().receipt
    assert isinstance(receipt, dict)
    items = receipt["items"]
    assert isinstance(items, list)
    return sum(isinstance(item, dict) and item["type"] == "run.requeued" for item in items)
