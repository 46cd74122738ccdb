"""One coordinator a session, one session a connection, and no epoch twice."""

from __future__ import annotations

import pytest

from pi_workflows.base.errors import AuthorityDenied
from pi_workflows.server.coordinators import BranchReport, Coordinators, SessionClaim

BRANCH = BranchReport("message-1", None, is_idle=False, has_pending_messages=True)


class Told:
    """Coordinators, and the sessions of which they told a change."""

    def __init__(self) -> None:
        self.sessions: list[str] = []
        self.coordinators = Coordinators(self.sessions.append)

    def refusal(self, session_id: str, epoch: int, connection: str) -> str | None:
        """Return the code with which a claim is refused; None when it holds."""
        try:
            self.coordinators.require(SessionClaim(session_id, epoch), connection)
        except AuthorityDenied as error:
            return error.reason_code
        return None


def test_the_newest_coordinator_fences_the_former_one() -> None:
    """A session has one epoch, and every epoch is new, whoever takes it and from whom."""
    told = Told()
    epochs = [
        told.coordinators.take("session", connection, "s") for connection in ("a", "b", "b", "a")
    ]
    epochs.append(told.coordinators.take("other", "c", "s"))
    assert epochs == [1, 2, 3, 4, 5]
    told.coordinators.report("session", BRANCH)
    assert told.refusal("session", 4, "a") is None
    for epoch, connection in ((1, "a"), (3, "b"), (4, "b"), (5, "a"), (2, "a")):
        assert told.refusal("session", epoch, connection) == "notCoordinator"


def test_a_new_epoch_has_no_report() -> None:
    """What the former coordinator reported opens nothing for the next one."""
    told = Told()
    told.coordinators.take("session", "a", "s")
    assert told.refusal("session", 1, "a") == "branchReportRequired"
    told.coordinators.report("session", BRANCH)
    coordinator = told.coordinators.of("session")
    assert coordinator is not None
    assert (coordinator.branch, told.refusal("session", 1, "a")) == (BRANCH, None)
    told.coordinators.take("session", "a", "s")
    assert told.refusal("session", 2, "a") == "branchReportRequired"


def test_a_connection_coordinates_one_session() -> None:
    """A second session needs a connection of its own; the first one stays as it is."""
    told = Told()
    told.coordinators.take("session", "a", "s")
    told.coordinators.take("other", "b", "s")
    with pytest.raises(AuthorityDenied) as caught:
        told.coordinators.take("other", "a", "t")
    assert caught.value.reason_code == "coordinatesAnother"
    for session_id, connection in (("session", "a"), ("other", "b")):
        coordinator = told.coordinators.of(session_id)
        assert coordinator is not None
        assert coordinator is told.coordinators.held_by(connection)


def test_it_ends_with_the_subscription_that_took_it() -> None:
    """Another subscription of the connection ends nothing, and a fenced one ends nobody else's."""
    told = Told()
    told.coordinators.take("session", "a", "s")
    told.coordinators.release("a", "another")
    told.coordinators.release("b", "s")
    assert told.coordinators.of("session") is not None
    told.coordinators.take("session", "b", "s")
    told.coordinators.release("a", "s")
    assert told.coordinators.of("session") is not None
    told.coordinators.release("b", "s")
    assert told.coordinators.of("session") is None
    assert told.coordinators.held_by("b") is None
    assert told.coordinators.take("other", "b", "s") == 3


def test_what_watchers_see_is_told() -> None:
    """Each change of a coordinator and the first report are told; what changes nothing is not."""
    told = Told()
    told.coordinators.fence("session")
    assert told.sessions == []
    told.coordinators.take("session", "a", "s")
    told.coordinators.report("session", BRANCH)
    told.coordinators.report("session", BRANCH)
    told.coordinators.take("other", "b", "s")
    told.coordinators.release("a", "s")
    told.coordinators.release("a", "s")
    assert told.sessions == ["session", "session", "other", "session"]
