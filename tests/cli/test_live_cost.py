"""What following a run costs: one subscription, and a question only for what somebody sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.version import package_version
from pi_workflows.cli.following import Detail, Followed, Follower
from pi_workflows.cli.listeners import Silence
from pi_workflows.cli.run_view import TraceItem
from pi_workflows.client.blocking import Client
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.wire import Payload
from pi_workflows.server.paths import StateDirectory
from tests.cli.installation import Installation

pytestmark = pytest.mark.slow


class Counted(Client):
    """A client that remembers what it asked."""

    asked: tuple[Operation, ...] = ()

    def request(
        self,
        operation: Operation,
        payload: Payload | Json,
        *,
        run_id: str | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Reply:
        """Ask, and remember it."""
        self.asked = (*self.asked, operation)
        return super().request(
            operation, payload, run_id=run_id, expected_revision=expected_revision, key=key
        )


class Watcher(Silence):
    """Counts what it is told, and checks that what is shown is up to date.

    Args:
        detail: How much it shows.
    """

    def __init__(self, detail: Detail) -> None:
        self.views = 0
        self.events = 0
        self.errors: list[Json] = []
        self._detail: Detail = detail

    @property
    def detail(self) -> Detail:
        """How much it shows."""
        return self._detail

    def changed(self, run: Followed, item: TraceItem) -> None:
        """Count an event, and remember why it failed."""
        self.events += 1
        if item.payload.get("outcome") == "failed":
            self.errors.append(run.errors.get(item.attempt_id or ""))

    def seen(self, run: Followed) -> None:
        """Count a view."""
        assert run.view is not None
        self.views += 1
        if self._detail in ("picture", "whole"):
            assert run.view.here in (None, *run.view.workflow.nodes)
            results = run.view.state.results
            failed = (step.node_id for step in run.view.graph_steps if step.outcome != "ok")
            assert all(results[node].error is not None for node in failed)
        if self._detail == "whole":
            assert run.view.state.results.keys() == {step.node_id for step in run.view.graph_steps}


class Opener(Watcher):
    """Lets a run go on once it is shown how it waits at a gate.

    Args:
        detail: How much it shows.
        gate: The gate.
    """

    def __init__(self, detail: Detail, gate: Path) -> None:
        super().__init__(detail)
        self._gate = gate

    def seen(self, run: Followed) -> None:
        """Open the gate once."""
        super().seen(run)
        if run.view is not None and run.view.here == "wait" and self._gate.exists():
            with self._gate.open("w") as gate:
                gate.write("go")
            self._gate.unlink()


def client_of(installation: Installation) -> Counted:
    """Return a client of an installation whose server runs."""
    return Counted(Endpoint(str(StateDirectory(installation.state).socket), package_version()))


@pytest.mark.parametrize("detail", ["events", "lines", "picture"])
def test_a_long_run_is_followed_without_questions(
    detail: Detail, installation: Installation
) -> None:
    """However much a run does, its patches tell everything that is shown while nothing fails."""
    run_id = f"rounds-{detail}"
    installation.start("loop", run_id, '{"rounds":300}')
    watcher = Watcher(detail)
    with client_of(installation) as client:
        assert Follower(client, (run_id,), watcher).follow() == 0
    assert watcher.events > 600
    # Events that came faster than a view holds them are read in pages.
    assert set(client.asked) <= {Operation.VIEW_PAGE}
    assert len(client.asked) <= watcher.events // 100


@pytest.mark.parametrize(
    ("detail", "operation"),
    [
        ("events", None),
        ("lines", Operation.VIEW_PAGE),
        ("picture", Operation.VIEW_RUN_GET),
    ],
)
def test_a_failure_costs_one_question(
    detail: Detail, operation: Operation | None, installation: Installation
) -> None:
    """Why an attempt failed is asked once for each that did, by those who show it."""
    tries = installation.root / f"tries-{detail}"
    installation.start("patient", f"fails-{detail}", f'{{"tries":"{tries}"}}')
    watcher = Watcher(detail)
    with client_of(installation) as client:
        assert Follower(client, (f"fails-{detail}",), watcher).follow() == 0
    assert len(watcher.errors) == 2
    assert all(watcher.errors) == (detail == "lines")
    # Two failed tries and a time-out.
    assert client.asked == (() if operation is None else (operation,) * len(client.asked))
    assert len(client.asked) <= 3


def test_a_picture_has_the_node_where_the_run_is(installation: Installation) -> None:
    """Of a large definition other nodes are shown as soon as the run is at one of them."""
    gate, tries = installation.gate("gate-far"), installation.root / "tries-far"
    tries.write_text("x")
    installation.start("wide", "far-1", f'{{"gate":"{gate}","tries":"{tries}"}}')
    with client_of(installation) as client:
        follower = Follower(client, ("far-1",), Opener("picture", gate))
        assert follower.follow() == 0
    (run,) = follower.runs
    assert run.view is not None
    assert "far" in run.view.workflow.nodes
    assert run.view.workflow.node_total == 602
    assert set(client.asked) == {Operation.VIEW_RUN_GET}


def test_a_retry_of_a_large_definition_is_known(installation: Installation) -> None:
    """Far from the nodes that the view has, a try that is repeated is no failed node either."""
    gate, tries = installation.gate("gate-retry"), installation.root / "tries-retry"
    installation.start("wide", "retry-1", f'{{"gate":"{gate}","tries":"{tries}"}}')
    watcher = Opener("events", gate)
    with client_of(installation) as client:
        assert Follower(client, ("retry-1",), watcher, fail_fast=True).follow() == 0
    assert len(watcher.errors) == 1
    assert set(client.asked) == {Operation.VIEW_CONTENT}


def test_a_program_gets_whole_views(installation: Installation) -> None:
    """Who shows everything asks for what a patch leaves out, and the last view has it, too."""
    installation.start("line", "whole-1")
    watcher = Watcher("whole")
    with client_of(installation) as client:
        follower = Follower(client, ("whole-1",), watcher)
        assert follower.follow() == 0
    (run,) = follower.runs
    assert run.view is not None
    assert run.view.state.has_output
    assert set(client.asked) <= {Operation.VIEW_RUN_GET}
    assert len(client.asked) <= watcher.views


def test_what_was_left_out_can_be_had_at_the_end(installation: Installation) -> None:
    """A run that was followed by its events alone gives its output when somebody asks."""
    installation.start("line", "late-1")
    with client_of(installation) as client:
        follower = Follower(client, ("late-1",), Watcher("events"))
        assert follower.follow() == 0
        (run,) = follower.runs
        view = follower.whole(run)
        assert view is not None
        assert view.state.has_output
        assert follower.whole(run) is view
    assert len(client.asked) <= 1
