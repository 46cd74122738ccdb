"""Where workflow code is loaded for the server: in children of its own, never in the server.

The decision on the resolver: one child program, one JSON line in, one out, 30 s, 8 MiB. A `resolve`
child is kept warm for its definition while the definition's files are unchanged; a `validate` child
judges one answer. Their number is bounded, and each ends with its whole tree.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import trio
from pydantic import ValidationError

from pi_workflows.base import canonical, ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, Problem, ProblemsFound, Refused, Unavailable
from pi_workflows.base.limits import (
    CHILD_ANSWER_BYTES_MAX,
    CHILD_ANSWER_MS,
    FRAME_DEPTH_MAX,
    RESOLVER_WARM_MS,
    RESOLVERS_MAX,
    SOCKET_READ_BYTES,
)
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.definition.source import SourceFile
from pi_workflows.server import registry, sources
from pi_workflows.server.log import ServerLog
from pi_workflows.server.registry import Child, Registry

Mode: TypeAlias = Literal["resolve", "validate"]
Key: TypeAlias = tuple[str, str | None]


@dataclass(slots=True, eq=False)
class _Loader:
    """A child that reads requests and writes answers.

    Attributes:
        child: The process.
        requests: Its standard input.
        answers: Its standard output.
        files: What the definition that it loaded last came from.
        rest: Cancelled when it is used again; its idle time runs inside.
    """

    child: Child
    requests: trio.abc.SendStream
    answers: trio.abc.ReceiveStream
    files: tuple[SourceFile, ...] = ()
    rest: trio.CancelScope | None = None


class Resolver:
    """Lists, resolves and checks workflows, and validates answers.

    Args:
        children: Where its processes are written down.
        definitions: The user's own workflows.
        environment: The server's environment at its start.
        log: Told when a child ends badly.
        changed: Called, without blocking, when a child began or ended.
    """

    def __init__(
        self,
        children: Registry,
        *,
        definitions: Path,
        environment: Mapping[str, str],
        log: ServerLog,
        changed: Callable[[], None],
    ) -> None:
        self._children = children
        self._definitions = definitions
        self._environment = environment
        self._log = log
        self._changed = changed
        self._busy = trio.CapacityLimiter(RESOLVERS_MAX)
        self._warm: dict[Key, _Loader] = {}
        self._nursery: trio.Nursery | None = None
        self.child_count = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look after the children until cancelled; then end them all."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None
            for loader in tuple(self._warm.values()):
                await self._end(loader)
            self._warm.clear()

    async def list_workflows(self, project_path: str) -> Json:
        """Return what `workflow.list` answers. Raises as `resolve`."""
        return await self._ask(project_path, None, {"operation": "list"})

    async def resolve(
        self, operation: Literal["resolve", "check"], project_path: str, target: str, **given: Json
    ) -> Json:
        """Load a workflow, and read an input with it.

        Args:
            operation: `resolve` with an input, `check` without.
            project_path: The project's directory.
            target: A name or a path.
            given: `input`, when there is one.

        Returns:
            What `run.start` carries.

        Raises:
            ProblemsFound: What the author or the caller got wrong.
            Refused: `resolverFailed`: the child did not answer in time, or died; `projectMissing`.
            Unavailable: The child could not be started.
        """
        request: dict[str, Json] = {"operation": operation, "target": target, **given}
        return await self._ask(project_path, target, request)

    async def validate(self, request: Mapping[str, Json], client: Mapping[str, str]) -> Json:
        """Judge an answer by the code of the workflow that asked.

        Args:
            request: As the runner protocol, "Program", says.
            client: The launching client's variables.

        Returns:
            The value as the workflow's model has it.

        Raises:
            PayloadInvalid: `answerInvalid`: it is not acceptable; the message says why.
            Refused: As `resolve`.
            Unavailable: As `resolve`.
        """
        async with self._busy:
            loader = self._start("validate", str(request["projectPath"]), client)
            try:
                answer = await self._exchange(loader, request)
            finally:
                await self._end(loader)
        if isinstance(answer, dict) and answer.get("valid") is True and "value" in answer:
            return answer["value"]
        reason = answer.get("error") if isinstance(answer, dict) else None
        raise PayloadInvalid(
            reason if isinstance(reason, str) else "The answer is not acceptable.",
            code="answerInvalid",
            field="input",
        )

    # --- one exchange ----------------------------------------------------------------------------

    async def _ask(self, project_path: str, target: str | None, request: dict[str, Json]) -> Json:
        """Ask the warm child of a definition, or a new one that is kept warm afterwards."""
        document: dict[str, Json] = {
            **request,
            "projectPath": project_path,
            "definitionsPath": str(self._definitions),
        }
        key = project_path, target
        async with self._busy:
            loader = await self._take_warm(key) or self._start("resolve", project_path, None)
            try:
                answer = await self._exchange(loader, document)
                loader.files = _source_files(answer)
            except BaseException:
                await self._end(loader)
                raise
            if self._nursery is None or key in self._warm:
                # The server ends, or another request of the same definition came first.
                await self._end(loader)
            else:
                await self._keep_warm(self._nursery, key, loader)
        problems = _problems(answer)
        if problems:
            raise ProblemsFound(problems, code=problems[0].code)
        return answer

    async def _exchange(self, loader: _Loader, request: Mapping[str, Json]) -> Json:
        """Send one line and read one. Raises Refused, and then the child must be ended."""
        line = canonical.encode(dict(request), depth_max=FRAME_DEPTH_MAX, field="request") + b"\n"
        answer = bytearray()
        try:
            with trio.fail_after(CHILD_ANSWER_MS / MS_PER_SECOND):
                await loader.requests.send_all(line)
                while not answer.endswith(b"\n"):
                    part = await loader.answers.receive_some(SOCKET_READ_BYTES)
                    answer += part
                    if not part or len(answer) > CHILD_ANSWER_BYTES_MAX:
                        raise _failed("ended or wrote too much before it had answered")
            return canonical.decode(bytes(answer), depth_max=FRAME_DEPTH_MAX, field="answer")
        except trio.TooSlowError:
            raise _failed(f"took longer than {CHILD_ANSWER_MS // MS_PER_SECOND} s") from None
        except trio.BrokenResourceError:
            raise _failed("ended before it had answered") from None
        except PayloadInvalid:
            raise _failed("answered something that is not JSON") from None

    # --- children --------------------------------------------------------------------------------

    def _start(self, mode: Mode, project_path: str, client: Mapping[str, str] | None) -> _Loader:
        """Start a child with its two pipes."""
        if self._nursery is None:
            raise Unavailable("The server is stopping.", code="stopping")
        worker_epoch = ids.random_id("worker")
        request_out, request_in = os.pipe()
        answer_out, answer_in = os.pipe()
        try:
            child = self._children.spawn(
                [sys.executable, "-P", "-m", "pi_workflows.runner", "--mode", mode],
                kind=mode,
                worker_epoch=worker_epoch,
                env=registry.environment(self._environment, client, worker_epoch),
                cwd=project_path,
                stdin=request_out,
                stdout=answer_in,
            )
        except OSError as error:
            os.close(request_in)
            os.close(answer_out)
            self._log.limited("resolver.start", errno=error.errno)
            if not os.path.isdir(project_path):  # noqa: PTH112 - one look, after the fact
                raise _no_project(project_path) from None
            raise Unavailable(
                "The process that loads workflows could not be started.", code="resolverNotStarted"
            ) from None
        finally:
            os.close(request_out)
            os.close(answer_in)
        self.child_count += 1
        self._changed()
        requests, answers = trio.lowlevel.FdStream(request_in), trio.lowlevel.FdStream(answer_out)
        return _Loader(child, requests, answers)

    async def _end(self, loader: _Loader) -> None:
        """End a child with everything that it started."""
        with trio.CancelScope(shield=True):
            await loader.requests.aclose()
            await loader.answers.aclose()
            # It has nothing to finish: what it loaded is not ours to wait for.
            if left := await loader.child.kill_tree(grace_ms=0):
                self._log.write("resolver.left", processes=len(left))
        self.child_count -= 1
        self._changed()

    async def _take_warm(self, key: Key) -> _Loader | None:
        """Return the warm child of a definition, or end it when the files changed."""
        loader = self._warm.pop(key, None)
        if loader is None:
            return None
        if loader.rest is not None:
            loader.rest.cancel()
        if not loader.child.is_alive or await sources.changed(loader.files) is not None:
            await self._end(loader)
            return None
        return loader

    async def _keep_warm(self, nursery: trio.Nursery, key: Key, loader: _Loader) -> None:
        """Keep a child for the next request of its definition; the one that rested longest goes."""
        self._warm[key] = loader
        loader.rest = trio.CancelScope()
        nursery.start_soon(self._rest, key, loader, loader.rest)
        if len(self._warm) > RESOLVERS_MAX:
            oldest = self._warm.pop(next(iter(self._warm)))
            if oldest.rest is not None:
                oldest.rest.cancel()
            await self._end(oldest)

    async def _rest(self, key: Key, loader: _Loader, rest: trio.CancelScope) -> None:
        """End a warm child that nobody used for a while, or that ended by itself."""
        with rest:
            with trio.move_on_after(RESOLVER_WARM_MS / MS_PER_SECOND):
                await loader.child.wait()
            if self._warm.get(key) is loader:
                del self._warm[key]
                await self._end(loader)


def _source_files(answer: Json) -> tuple[SourceFile, ...]:
    """Return the files that an answer's definition came from; none for a list or for problems."""
    files = answer.get("sourceFiles") if isinstance(answer, dict) else None
    if not isinstance(files, list):
        return ()
    try:
        return tuple(SourceFile.model_validate(file) for file in files)
    except ValidationError:
        raise _failed("answered something that is no definition") from None


def _problems(answer: Json) -> tuple[Problem, ...]:
    """Return the problems that an answer reports."""
    listed = answer.get("problems") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return ()
    texts = [item for item in listed if isinstance(item, dict)]
    return tuple(
        Problem(str(item.get("code")), str(item.get("where")), str(item.get("message")))
        for item in texts
    )


def _failed(what: str) -> Refused:
    """Return the error of a child that did not do its work: the workflow's own code ran in it."""
    return Refused(
        f"The process that loads the workflow {what}.",
        code="resolverFailed",
        hint="Run it directly to see more: pi-workflows check FILE",
    )


def _no_project(project_path: str) -> Refused:
    """Return the error of a project that is not there."""
    return Refused(
        f"There is no directory {project_path}.", code="projectMissing", field="projectPath"
    )
