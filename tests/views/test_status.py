"""How much is stored, waits, works and stands still."""

from __future__ import annotations

from pi_workflows.domain.run.control import CancelRun, PauseRun
from pi_workflows.views.status import ServerCounts, server_counts, state_counts
from tests.kernel.harness import Harness, ask, begin, definition, reserve, try_effect

ACTION = definition(
    {
        "deploy": {
            "type": "action",
            "actionForm": "function",
            "effect": {"type": "deploy", "recovery": "manual"},
        }
    }
)
GATE = definition({"gate": {"type": "checkpoint", "timeoutMs": 0}})


def story(bench: Harness) -> None:
    """Leave runs queued, waiting, paused, ended, and one whose effect is ambiguous."""
    permit = bench.launch("run-1", ACTION)
    bench.do(begin("deploy", node_type="action"), permit=permit)
    answer = bench.do(reserve("deploy", "manual"), permit=permit)
    assert isinstance(answer.values, dict)
    bench.do(try_effect(str(answer.values["effectId"])), permit=permit)
    bench.do(CancelRun("run-1"))
    permit = bench.launch("waiting", GATE)
    bench.do(begin("gate", run_id="waiting", node_type="checkpoint"), permit=permit)
    bench.do(ask("gate", run_id="waiting"), permit=permit)
    bench.do(bench.start("paused"), bench.start("queued"))
    bench.do(PauseRun("paused"))
    bench.launch("running")


def test_the_server_counts_what_waits_works_and_stands_still(bench: Harness) -> None:
    """Each count is of the rows in that state, and a claim counts as expired when it is."""
    story(bench)
    with bench.store.snapshot() as read:
        found = server_counts(read, bench.clock.now_ms())
        later = server_counts(read, bench.clock.now_ms() + 60_000)
    assert found == ServerCounts(
        queued_runs=1,
        running_runs=1,
        parked_runs=2,
        waiting_runs=1,
        expired_claims=0,
        pending_interactions=1,
        ambiguous_effects=1,
        pending_resource_managers=0,
        lifecycle_contradictions=0,
    )
    assert later.expired_claims == 1


def test_the_state_counts_what_is_stored(bench: Harness) -> None:
    """Runs with their effects are resources; what may still happen is unsettled."""
    story(bench)
    with bench.store.snapshot() as read:
        found = state_counts(read, bench.clock.now_ms())
        later = state_counts(read, bench.clock.now_ms() + 60_000)
    # Five runs, the effect, and the settlement of the run that ended.
    assert found.resources == 7
    assert (found.runs, found.pending_interactions, found.unsettled_effects) == (5, 1, 1)
    assert (found.active_leases, later.active_leases) == (1, 0)
    assert (found.resource_managers, found.decisions, found.settings_scopes) == (0, 0, 0)
    assert found.pending_follow_ups == 0


def test_an_empty_database_counts_nothing(bench: Harness) -> None:
    """Before the first run every count is 0."""
    with bench.store.snapshot() as read:
        assert set(server_counts(read, 0)) == {0}
        assert set(state_counts(read, 0).document().values()) == {0}
