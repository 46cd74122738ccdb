"""One runner's work under trio: its parts, the channel, the engine, and the end of all."""

from __future__ import annotations

import trio

from pi_workflows.authoring.loading import Loaded
from pi_workflows.base import canonical
from pi_workflows.base.clock import SystemClock
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.limits import RUNNER_SHUTDOWN_MS
from pi_workflows.protocol.content import ContentMissing, ContentPart
from pi_workflows.protocol.runner import Child, FromServer, Launch, Result, Resume, Stop
from pi_workflows.runner.actions import Actions
from pi_workflows.runner.attempts import Bound
from pi_workflows.runner.boundaries import Boundaries
from pi_workflows.runner.calls import Calls
from pi_workflows.runner.channel import Channel
from pi_workflows.runner.children import Children
from pi_workflows.runner.commands import Commands
from pi_workflows.runner.contents import Contents
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.effects import Effects
from pi_workflows.runner.ending import EXIT_DONE, EXIT_LOST, Ending
from pi_workflows.runner.engine import Engine
from pi_workflows.runner.history import History
from pi_workflows.runner.judge import Judge
from pi_workflows.runner.logs import Logs
from pi_workflows.runner.mounts import Mounts
from pi_workflows.runner.proposals import Proposals
from pi_workflows.runner.settings import Settings
from pi_workflows.runner.shell import Shells
from pi_workflows.runner.updates import Updates


class Session:
    """One launch of one run, from `ready` to the end of the process."""

    def __init__(self, channel: Channel, launch: Launch, loaded: Loaded) -> None:
        """Put the parts together. Must be called under trio.

        Args:
            channel: The server; `ready` was sent.
            launch: What to run.
            loaded: Its definition, verified.
        """
        self._channel = channel
        self._launch = launch
        self._loaded = loaded
        self._clock = SystemClock()
        self._ending = Ending()
        self._proposals = Proposals(
            channel, self._ending, ahead_max=launch.limits.proposals_ahead_max
        )
        self._contents = Contents(channel)
        self._effects = Effects(self._proposals, self._contents, self._ending)
        self._children = Children(channel)
        self._drains = False

    async def run(self) -> int:
        """Serve the channel and run the engine until one of them ends; return the exit status.

        No process of the run's shells is left when this returns.
        """
        self._channel.enter_trio(self._proposals.changed)
        async with trio.open_nursery() as serving:
            serving.start_soon(self._channel.flush)
            serving.start_soon(self._serve, serving)
            with self._ending.scope:
                async with trio.open_nursery() as working:
                    await self._work(working)
                    working.cancel_scope.cancel()
            if self._drains:
                with trio.move_on_after(RUNNER_SHUTDOWN_MS / 2 / 1_000):
                    await self._proposals.unanswered_are_answered()
            serving.cancel_scope.cancel()
        return self._ending.exit_code

    async def _work(self, working: trio.Nursery) -> None:
        """Run the engine from where the run stands."""
        run_input = canonical.decode_canonical(await self._contents.get(self._launch.input))
        workflow = self._loaded.workflow
        history = History.of(workflow.snapshot)
        if self._launch.resume is not None:
            await self._recall(history, self._launch.resume)
        run_id = self._launch.run_id
        updates = Updates(self._proposals, self._ending, self._clock)
        known: dict[str, Bound] = {}
        contexts = Contexts(
            run_id,
            workflow,
            run_input,
            history,
            updates,
            known=known,
            project_path=self._launch.project_path,
        )
        calls = Calls(working, self._clock)
        judge = Judge(self._loaded.paths)
        settings = Settings(
            run_id,
            workflow,
            contexts,
            known=known,
            contents=self._contents,
            calls=calls,
            judge=judge,
            clock=self._clock,
        )
        if self._launch.resume is not None:
            await settings.recall(self._launch.resume.settings or ())
        commands = Commands(
            contexts,
            self._effects,
            calls,
            judge,
            shells=Shells(self._children, self._clock),
            logs=Logs(self._channel, self._clock),
            project_path=self._launch.project_path,
        )
        engine = Engine(
            workflow=workflow,
            boundaries=Boundaries(
                run_id,
                workflow,
                history,
                proposals=self._proposals,
                contents=self._contents,
                clock=self._clock,
            ),
            contexts=contexts,
            mounts=Mounts(workflow, history, contexts, calls=calls, judge=judge, clock=self._clock),
            settings=settings,
            proposals=self._proposals,
            contents=self._contents,
            calls=calls,
            judge=judge,
            actions=Actions(contexts, self._effects, calls, judge),
            commands=commands,
            clock=self._clock,
            is_interactive=self._launch.launch_options.get("executionMode") == "interactive",
        )
        await engine.run(self._launch.resume)

    async def _recall(self, history: History, resume: Resume) -> None:
        """Fill the history with what the run did before this launch."""
        history.step_total = resume.step_total
        history.visits |= resume.visits
        history.attempts |= resume.attempts
        for path, reference in resume.outputs.items():
            history.keep(path, await self._contents.get(reference))
        for path, result in resume.results.items():
            history.note(path, result.outcome, result.error)
        history.exited |= resume.exited or {}
        for path, mount in (resume.mounts or {}).items():
            if mount.steps is not None:
                history.began[path] = resume.step_total - mount.steps
            if mount.exit is not None and mount.output is not None:
                history.keep_exit(path, mount.exit, await self._contents.get(mount.output))

    async def _serve(self, serving: trio.Nursery) -> None:
        """Take what the server sends until it closes the channel, which ends this runner."""
        try:
            async for message in self._channel.messages():
                self._take(message, serving)
        except ProtocolViolation as error:
            self._ending.end(EXIT_LOST, f"the server broke the protocol: {error.message}")
        else:
            self._ending.end(EXIT_LOST, "the server closed the channel")

    def _take(self, message: FromServer, serving: trio.Nursery) -> None:
        """Give a message to the part that it concerns."""
        match message:
            case Result():
                self._proposals.answered(message)
            case ContentPart() | ContentMissing():
                self._contents.received(message)
            case Child():
                self._children.registered(message)
            case Stop():
                self._stop(message, serving)
            case Launch():
                raise ProtocolViolation("a second launch", code="launchRepeated")

    def _stop(self, stop: Stop, serving: trio.Nursery) -> None:
        """Leave, or after a pause let a manual effect come to its end first."""
        if stop.reason == "pause" and self._effects.is_manual_open:
            self._ending.is_leaving = True
            serving.start_soon(self._leave_after, stop.grace_ms)
            return
        self._drains = stop.reason == "shutdown"
        self._ending.end(EXIT_DONE)

    async def _leave_after(self, grace_ms: int) -> None:
        await trio.sleep(grace_ms / 1_000)
        self._ending.end(EXIT_DONE)
