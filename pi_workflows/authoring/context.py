"""What a node's function is given: the input, what ran before, and its way to report progress."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from pi_workflows.authoring.updates import PublishedUpdate, Update, published
from pi_workflows.base.errors import NotFound
from pi_workflows.definition.progress import Progress

if TYPE_CHECKING:
    from pi_workflows.authoring.nodes import Node

InputT_co = TypeVar("InputT_co", covariant=True)
OutputT = TypeVar("OutputT")


class CancelSignal:
    """Tells a function that its run was paused, cancelled or timed out; safe in any thread.

    An async function is cancelled at its next await; a function that runs in a thread looks here.
    """

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def requested(self) -> bool:
        """Whether the function should end now."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep in a thread for at most `seconds`; return early, and True, on a request to end."""
        return self._event.wait(seconds)

    def request(self) -> None:
        """Ask the function to end; the runner's to call."""
        self._event.set()


class Publisher(Protocol):
    """How an update reaches the server; the runner's part."""

    async def publish(self, update: PublishedUpdate) -> None:
        """Send one update and return once it is committed.

        Raises:
            Refused: It is over its rate or bound.
        """
        ...

    def publish_from_thread(self, update: PublishedUpdate) -> None:
        """Do the same from a function that runs in a thread."""
        ...


@dataclass(frozen=True, slots=True)
class NodeResult:
    """How the newest visit of a node ended.

    Attributes:
        outcome: `ok`, `failed`, `timed_out` or `cancelled`.
        error: The failure in one line; None for `ok`.
    """

    outcome: Literal["ok", "failed", "timed_out", "cancelled"]
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Context(Generic[InputT_co]):
    """What every node's function is given.

    Attributes:
        input: The run's input, an instance of the workflow's input model.
        outputs: The newest `ok` output of each node by name, as JSON; a later visit that fails
            removes it.
        results: How the newest visit of each node ended, by name.
        run_id: The run.
        project_path: The absolute directory of the run's project.
        node_path: This node's path.
        visit: Which entry of this node in the run, from 1.
        attempt_number: Which attempt of this node in the run, from 1.
        cancel: Tells a function in a thread that it should end.
        nodes: The workflow's nodes by name.
        publisher: The runner's way to the server.
        settings: The workflow's settings, an instance of their model, which stays the same for the
            whole attempt; None without any.
        settings_scope_id: The settings of which invocation these are.
        settings_change_number: Which change of them these are; 0 before the first.
    """

    input: InputT_co
    # JSON is dynamic: an author who wants types declares an output model and asks `output_of`.
    outputs: Mapping[str, Any]
    results: Mapping[str, NodeResult]
    run_id: str
    project_path: str
    node_path: str
    visit: int
    attempt_number: int
    cancel: CancelSignal
    nodes: Mapping[str, Node[object]] = field(repr=False)
    publisher: Publisher = field(repr=False)
    # The author's model is the workflow's, which a node's function does not name.
    settings: Any = None
    settings_scope_id: str | None = None
    settings_change_number: int | None = None

    def output_of(self, node: Node[OutputT]) -> OutputT:
        """Return a node's newest `ok` output, typed.

        Args:
            node: A node of this workflow, the object itself.

        Returns:
            The output: an instance of the node's output model when it has one, else the JSON value.

        Raises:
            NotFound: The node has no such output in this run (`outputMissing`), is not part of this
                workflow (`nodeForeign`), or stands in it under several names (`nodeAmbiguous`).
        """
        paths = [path for path, known in self.nodes.items() if known is node]
        if not paths:
            raise NotFound(
                "output_of: this node is not one of the workflow's nodes", code="nodeForeign"
            )
        if len(paths) > 1:
            raise NotFound(
                f"output_of: the node stands under several names ({', '.join(paths)});"
                " read ctx.outputs by name",
                code="nodeAmbiguous",
            )
        if paths[0] not in self.outputs:
            raise NotFound(
                f"output_of: {paths[0]!r} has no output yet, or failed when it last ran",
                code="outputMissing",
            )
        return node.output_value(self.outputs[paths[0]])

    async def publish_update(self, update: Progress | Update, *, key: str | None = None) -> None:
        """Publish an update of this node; the newest one per type and key is kept.

        Args:
            update: A `Progress`, or any other typed `Update`.
            key: Which track this is when a node has several; by default one per node.

        Returns:
            Once the update is committed. What the caller changes afterwards changes nothing stored.

        Raises:
            PayloadInvalid: The type, key or data is not allowed; the message names the field.
            LimitExceeded: Too much data, too many keys, or too many updates a second.
        """
        await self.publisher.publish(published(update, key=key, node_path=self.node_path))

    def publish_update_from_thread(
        self, update: Progress | Update, *, key: str | None = None
    ) -> None:
        """Do what `publish_update` does, from a plain function: those run in a thread."""
        self.publisher.publish_from_thread(published(update, key=key, node_path=self.node_path))


@dataclass(frozen=True, kw_only=True)
class ActionContext(Context[InputT_co]):
    """What an action's function is given.

    Attributes:
        effect_key: The same text for every try of this visit's effect: a provider's idempotency
            key.
        effect_attempt: Which try of the effect this is, from 1.
    """

    effect_key: str
    effect_attempt: int
