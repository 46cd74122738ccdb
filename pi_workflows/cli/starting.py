"""Starting a run and staying with it."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import SystemClock
from pi_workflows.base.errors import Outcome as Answered
from pi_workflows.base.errors import RevisionConflict, WrongUsage
from pi_workflows.base.limits import RUN_ID_CHARS_MAX
from pi_workflows.cli.answering import interview
from pi_workflows.cli.connection import ask, client
from pi_workflows.cli.content import whole
from pi_workflows.cli.following import Follower, Listener
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.listeners import PlainProgress, Silence
from pi_workflows.cli.measures import age, duration
from pi_workflows.cli.outcome import WAITING
from pi_workflows.cli.question import answer_example, question_lines, schema_lines
from pi_workflows.cli.result import write_result
from pi_workflows.cli.run_view import RunView
from pi_workflows.cli.values import json_value
from pi_workflows.cli.workflow_target import absolute_target, project_path
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.runs import EnvironmentName, LaunchOptions, RunStart
from pi_workflows.protocol.wire import is_run_id
from pi_workflows.protocol.workflows import WorkflowResolve, WorkflowResolved

_RANDOM_BYTES: Final = 8
_MS_PER_SECOND: Final = 1_000


@dataclass(frozen=True, slots=True)
class Start:
    """What `run` was told.

    Attributes:
        target: A name or a path.
        value: The input as it was typed.
        run_id: The run's ID; None draws one.
        project: The project's directory.
        deadline: Seconds to follow; None without end.
        is_detached: Whether the run is not followed at all.
    """

    target: str
    value: str
    run_id: str | None
    project: Path
    deadline: float | None
    is_detached: bool


def start(invocation: Invocation, asked: Start) -> int:
    """Start a workflow and follow its run.

    Returns:
        The exit code: of the run, or 0 when it is not followed.

    Raises:
        WrongUsage: The input is no JSON, the run ID is none, the directory does not exist.
        ProblemsFound: The workflow or its input has mistakes.
        Refused: The server refused the run.
        Unavailable: As `Client.request`.
        OutcomeUnknown: As `Client.request`.
    """
    value = json_value(asked.value, field="--input")
    if asked.run_id is not None and not is_run_id(asked.run_id):
        raise WrongUsage(
            "--run-id: use letters, digits, '.', '_' and '-', at most"
            f" {RUN_ID_CHARS_MAX}, a letter or digit first",
            code="runIdInvalid",
            field="--run-id",
        )
    project = project_path(asked.project)
    with client(invocation) as server:
        resolve = WorkflowResolve(
            project_path=project, target=absolute_target(asked.target), input=value
        )
        resolved = WorkflowResolved.parse(ask(server, Operation.WORKFLOW_RESOLVE, resolve).receipt)
        run_id = asked.run_id or _drawn_run_id(invocation, resolved.workflow_name)
        reply = _start_run(invocation, server, run_id, project, resolved)
        from_seq = 0
        if reply.outcome is Answered.ADOPTED:
            view = RunView.parse(ask(server, Operation.VIEW_RUN_GET, {}, run_id=run_id).receipt)
            invocation.output.note(_adopted(view))
            # What happened before was told to whoever started it.
            from_seq = view.state.trace_seq
        if asked.is_detached:
            return _detached(invocation, run_id, reply)
        return _Attendance(invocation, server, run_id, reply, from_seq).stay(asked.deadline)


def _start_run(
    invocation: Invocation, server: Client, run_id: str, project: str, resolved: WorkflowResolved
) -> Reply:
    """Send what the resolver answered."""
    payload = RunStart(
        project_path=project,
        workflow_name=resolved.workflow_name,
        workflow_source_ref=resolved.workflow_source_ref,
        workflow_source=resolved.workflow_source,
        source_files=resolved.source_files,
        mounts=resolved.mounts,
        definition_digest=resolved.definition_digest,
        definition_snapshot=resolved.definition_snapshot,
        input=resolved.input,
        title=resolved.title,
        launch_options=LaunchOptions(environment=_environment(os.environ)),
        origin_session_id=f"local-{run_id}",
        execution_mode="headless",
    )
    return ask(server, Operation.RUN_START, payload, run_id=run_id, key=invocation.key)


def _environment(environment: Mapping[str, str]) -> dict[EnvironmentName, str]:
    """Return what the run's programs get of our variables."""
    names = get_args(EnvironmentName)
    return {name: environment[name] for name in names if name in environment}


def _drawn_run_id(invocation: Invocation, workflow_name: str) -> str:
    """Return a run ID that nobody has: random as the key is, and repeated with it."""
    drawn = invocation.derived("run")[:_RANDOM_BYTES]
    return f"{workflow_name}-{base64.b32encode(drawn).decode().rstrip('=').lower()}"


def _detached(invocation: Invocation, run_id: str, reply: Reply) -> int:
    """Say that the run exists, and nothing else."""
    if invocation.is_json:
        document = _document(run_id, reply)
        invocation.output.document({**document, "outcome": "started", "exitCode": 0})
        return 0
    invocation.output.line(run_id)
    started = "" if reply.outcome is Answered.ADOPTED else "Started. "
    invocation.output.note(f"{started}Follow it: pi-workflows watch {run_id}")
    return 0


def _adopted(view: RunView) -> str:
    """Say that the run is one that was there."""
    state = view.state
    since = "started" if state.finished_at is None else ""
    ago = age(SystemClock().now_ms() - (state.finished_at or state.created_at))
    when = f"{since} {'just now' if ago == 'now' else f'{ago} ago'}".strip()
    status = view.display.status.replace("_", " ")
    joint = ", " if since else " "
    return f"{view.run_id} already exists ({status}{joint}{when}); nothing was started."


def _document(run_id: str, reply: Reply) -> dict[str, Json]:
    """Return the members of `pi-workflows.cli-run.v1` that every form of it has."""
    return {
        "schema": "pi-workflows.cli-run.v1",
        "runId": run_id,
        "adopted": reply.outcome is Answered.ADOPTED,
    }


class _Attendance:
    """Stays with a run that was started, until it ends or needs somebody who is not here."""

    def __init__(
        self, invocation: Invocation, server: Client, run_id: str, reply: Reply, from_seq: int
    ) -> None:
        self._invocation = invocation
        self._output = invocation.output
        self._server = server
        self._run_id = run_id
        self._reply = reply
        self._from_seq = from_seq

    def stay(self, deadline: float | None) -> int:
        """Follow the run, ask what it asks, and tell what it gave.

        Args:
            deadline: Seconds; None without end.

        Returns:
            The exit code.
        """
        self._invocation.followed = (self._run_id,)
        deadline_ms = None if deadline is None else int(deadline * _MS_PER_SECOND)
        if self._output.shows_live:
            # Loading the display costs more than a short run.
            from pi_workflows.cli.live import LiveDisplay  # noqa: PLC0415

            display = LiveDisplay(self._output)
            follower = self._follower(display, deadline_ms)
            while True:
                with display:
                    code = follower.follow()
                if code != WAITING or not self._has_asked(follower):
                    break
        else:
            listener = Silence() if self._output.is_json else PlainProgress(self._output)
            follower = self._follower(listener, deadline_ms)
            code = follower.follow()
        self._tell(follower, code)
        return code

    def _follower(self, listener: Listener, deadline_ms: int | None) -> Follower:
        """Return what follows the run."""
        return Follower(
            self._server,
            (self._run_id,),
            listener,
            from_seq=self._from_seq,
            deadline_ms=deadline_ms,
        )

    def _has_asked(self, follower: Follower) -> bool:
        """Ask the person here; whether the run goes on."""
        view = follower.runs[0].view
        if not self._output.can_ask or view is None or view.state.interaction is None:
            return False
        try:
            reply = interview(self._invocation, self._server, view, view.state.interaction)
        except RevisionConflict:
            self._output.note("Somebody else has answered, or the run has ended.")
            follower.runs[0].stale_below = view.run_revision + 1
            return True
        if reply is None:
            return False
        follower.runs[0].stale_below = reply.revision or 0
        return True

    def _tell(self, follower: Follower, code: int) -> None:
        """Tell what the run came to."""
        run = follower.runs[0]
        name = run.outcome.name if run.outcome is not None else "unknown"
        is_whole = self._invocation.is_json or name == "completed"
        view = follower.whole(run) if is_whole else run.view
        if self._invocation.is_json:
            document = _document(self._run_id, self._reply)
            shown: Json = view.document if view is not None else None
            self._output.document({**document, "outcome": name, "exitCode": code, "view": shown})
            return
        if view is None:
            return
        self._output.note("" if self._output.shows_live else _summary(view, name))
        if name == "completed":
            write_result(self._output, self._server, view)
        self._say_next(view, name)

    def _say_next(self, view: RunView, name: str) -> None:
        """Say what to do next."""
        run_id = self._run_id
        match name:
            case "waiting":
                self._say_question(view)
            case "paused":
                self._output.note(f"Let it go on: pi-workflows resume {run_id}")
            case "parked" if view.display.status == "ambiguous":
                self._output.note(f"Look at it: pi-workflows effects --run {run_id}")
            case "parked":
                self._output.note(f"When it is put right: pi-workflows resume {run_id}")
            case "deadline":
                self._output.note(f"It goes on. Follow it: pi-workflows watch {run_id}")
            case _:
                self._output.note(f"More: pi-workflows show {run_id}")

    def _say_question(self, view: RunView) -> None:
        """Say what the run asks, what an answer looks like, and how it is given."""
        request = view.state.interaction
        contract = None if request is None else whole(self._server, view.run_id, request.contract)
        if request is not None and not self._output.can_ask:
            for line in question_lines(contract):
                self._output.note(line)
            for line in schema_lines(contract):
                self._output.note(f"  {line}")
        example = answer_example(contract)
        self._output.note(f"Answer it: pi-workflows answer {view.run_id} {example}")


def _summary(view: RunView, name: str) -> str:
    """Return the end of a run that was followed, in one line."""
    if name == "deadline":
        return f"{view.run_id} is still {view.display.status}."
    reason = f": {view.display.reason}" if view.display.reason and name != "waiting" else ""
    if view.state.finished_at is None:
        return f"{view.run_id} is {name}{reason or '.'}"
    took = duration(view.state.finished_at - view.state.created_at)
    return f"{view.run_id} {name.replace('_', ' ')} after {took}{reason}"
