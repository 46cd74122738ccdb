"""`pi-workflows.definition-snapshot.v1`: everything about a workflow that is not code."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Literal, TypeAlias

from pydantic import Field, ValidationError

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Problem, ProblemsFound
from pi_workflows.definition.decision import DecisionPolicy
from pi_workflows.definition.document import Document
from pi_workflows.definition.paths import ROOT, is_within
from pi_workflows.definition.settings import SettingsPolicy, policy_of

NodeType: TypeAlias = Literal["agent", "compute", "notify", "action", "checkpoint"]
ActionForm: TypeAlias = Literal["function", "shell"]
Recovery: TypeAlias = Literal["idempotent", "manual"]
RetriedOutcome: TypeAlias = Literal["failed", "timed_out"]
NoticeKind: TypeAlias = Literal["progress", "final"]
RequestKind: TypeAlias = Literal["agent", "assistant", "checkpoint", "decision"]


SHELL_RESULT_MODEL: Final = "pi_workflows.authoring.commands.ShellResult"
"""The model of what a command gives that nothing parses."""


class EffectPolicy(Document):
    """What an action does to the world, and what a crash in the middle of it means.

    Attributes:
        type: The author's name of the effect, 1-256 characters.
        recovery: `idempotent`: repeating it is harmless; `manual`: a person decides.
    """

    type: str
    recovery: Recovery


class RetryPolicy(Document):
    """When a visit is tried again.

    Attributes:
        max_attempts: Tries of one visit in all, the first included.
        on: The outcomes that are tried again.
        delay_ms: Milliseconds before the second try.
        backoff: What each further delay is multiplied by.
    """

    max_attempts: int
    on: tuple[RetriedOutcome, ...]
    delay_ms: int
    backoff: float


class AssistantOutput(Document):
    """The output of an agent node that is the visible text of its turn.

    Attributes:
        kind: The fixed name of this form.
        max_chars: The greatest number of characters; None = no limit.
    """

    kind: Literal["assistant-message"] = "assistant-message"
    max_chars: int | None = None


class Node(Document):
    """One node.

    Attributes:
        type: How the engine runs it.
        timeout_ms: Active milliseconds of one attempt; 0 = unlimited, None = computed at the start.
        summary: What a checkpoint asks, in one line.
        status_detail: What people read while the node runs.
        action_form: Whether an action is a function or a command.
        effect: What an action applies; None for other types.
        retry: When the visit is tried again; None = never.
        output_model: The qualified name of the model that the output or answer must fit.
        expected_output: What an agent gives, in words, or that its visible text is the output.
        allowed_tools: The tools that an agent may use beside the workflow's own; None = all.
        prompt_chars_max: The greatest length of an agent's prompt, where it is not the usual one.
        choices: The values that an agent's decision may take.
        choice_field: The member of the output that holds the choice.
        notify_kind: Whether a notification is one of several or the last word.
        human_decision: Who decides at a checkpoint that a person alone may answer, and how.
        approved_by: The path of the decision that an action needs, about exactly its request.
        settings_route: Set on a compute node that runs again when its settings changed under it.
    """

    type: NodeType
    timeout_ms: int | None = None
    summary: str | None = None
    status_detail: str | None = None
    action_form: ActionForm | None = None
    effect: EffectPolicy | None = None
    retry: RetryPolicy | None = None
    output_model: str | None = None
    expected_output: str | AssistantOutput | None = None
    allowed_tools: tuple[str, ...] | None = None
    prompt_chars_max: int | None = None
    choices: tuple[str, ...] | None = None
    choice_field: str | None = None
    notify_kind: NoticeKind | None = None
    human_decision: DecisionPolicy | None = None
    approved_by: str | None = None
    settings_route: Literal[True] | None = None

    @property
    def request_kind(self) -> RequestKind | None:
        """What kind of answer the node waits for; None for one that waits for none."""
        if self.type == "agent":
            is_text = isinstance(self.expected_output, AssistantOutput)
            return "assistant" if is_text else "agent"
        if self.type == "checkpoint":
            return "checkpoint" if self.human_decision is None else "decision"
        return None

    @property
    def case_values(self) -> tuple[str, tuple[str, ...]] | None:
        """The member of the output that holds a choice, and every value that it may have."""
        if self.choices is not None and self.choice_field is not None:
            return self.choice_field, self.choices
        if self.human_decision is not None:
            return "choice", tuple(choice.id for choice in self.human_decision.choices)
        return None

    @property
    def needs_own_result(self) -> bool:
        """Whether only the author's code, or who knows its model, can say what the node gives.

        The result of a command is the engine's own model, which nobody can write down after the
        fact: a confirmation stands for it.
        """
        return self.output_model not in (None, SHELL_RESULT_MODEL)


class Edge(Document):
    """The way out of one node: plain (`to`) or by a value (`on` and `cases`).

    Attributes:
        source: The node that ended; `from` on the wire.
        to: The next node of a plain edge.
        on: What a switch looks at, such as `$.route`.
        cases: The next node by the looked-at value as text.
        scope: The mount whose workflow declares the edge; None = the root.
        delay: How long the run waits on a plain edge: milliseconds, or where the output of the
            node that ended says how many, such as `$.wait_ms`.
    """

    source: str = Field(validation_alias="from", serialization_alias="from")
    to: str | None = None
    on: str | None = None
    cases: dict[str, str] | None = None
    scope: str | None = None
    delay: int | str | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """Every node that this edge may lead to."""
        return (self.to,) if self.to is not None else tuple((self.cases or {}).values())


class MountExit(Document):
    """One way out of an included workflow.

    Attributes:
        node: The full path of the node that it ends with.
        output_model: The qualified name of the model of what it gives.
    """

    node: str
    output_model: str | None = None


class Mount(Document):
    """An included workflow: where its nodes hang, how it begins, how it is left.

    Attributes:
        path: The path that prefixes its nodes.
        workflow_name: Its own name.
        contract_id: The contract that it declares.
        input_model: The qualified name of its input's model.
        start_at: The full path of its first node.
        max_steps: Attempts that one invocation may start.
        exits: Its exits by name.
    """

    path: str
    workflow_name: str
    contract_id: str | None = None
    input_model: str | None = None
    start_at: str
    max_steps: int
    exits: dict[str, MountExit]


class Snapshot(Document):
    """A whole definition. The digest is over `document()`; nothing here depends on the machine.

    Attributes:
        schema_id: The fixed schema name; `schema` on the wire.
        name: The workflow's name.
        contract_id: The contract that an includer may ask for.
        input_model: The qualified name of the input's model.
        start_at: The path of the first node.
        max_steps: Attempts that a run may start.
        nodes: The nodes by full compiled path.
        edges: At most one per node, ordered by node.
        mounts: The included workflows.
        presentation: How the session that started a run is told to present its end.
        settings: The settings of the root and of each mount that has any.
    """

    schema_id: Literal["pi-workflows.definition-snapshot.v1"] = Field(
        default="pi-workflows.definition-snapshot.v1",
        validation_alias="schema",
        serialization_alias="schema",
    )
    name: str
    contract_id: str | None = None
    input_model: str | None = None
    start_at: str
    max_steps: int
    nodes: dict[str, Node]
    edges: tuple[Edge, ...]
    mounts: tuple[Mount, ...] = ()
    presentation: str | None = None
    settings: tuple[SettingsPolicy, ...] | None = None

    @classmethod
    def parse(cls, content: bytes) -> Snapshot:
        """Read a stored or received snapshot.

        Args:
            content: Canonical JSON.

        Returns:
            The snapshot, whose graph is sound: routes never meet an unknown node.

        Raises:
            PayloadInvalid: It is not JSON, not this schema, or its graph has problems
                (ProblemsFound).
        """
        # Imported here because the checks are written in terms of this model.
        from pi_workflows.definition.graph import snapshot_problems  # noqa: PLC0415

        # What two readers could take differently is refused before pydantic reads its own way.
        canonical.decode(content, field="definitionSnapshot")
        try:
            snapshot = cls.model_validate_json(content)
        except ValidationError as error:
            raise ProblemsFound(
                Problem(
                    "snapshotInvalid",
                    ".".join(("definitionSnapshot", *map(str, detail["loc"]))),
                    detail["msg"],
                )
                for detail in error.errors(include_url=False, include_input=False)
            ) from None
        problems = snapshot_problems(snapshot)
        if problems:
            raise ProblemsFound(problems)
        return snapshot

    def document(self) -> Json:
        """Return the snapshot as JSON: camelCase, absent members left out."""
        document: Json = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return document

    @cached_property
    def edge_by_source(self) -> dict[str, Edge]:
        """The way out of each node that has one."""
        return {edge.source: edge for edge in self.edges}

    @cached_property
    def entrances(self) -> dict[str, tuple[str, ...]]:
        """The nodes whose edges may enter each mount anew, in the order of the edges.

        One of them that is an exit's node of the mount itself leads out and in again.
        """
        return {
            mount.path: tuple(
                edge.source
                for edge in self.edges
                if not is_within(edge.scope or ROOT, mount.path)
                and any(is_within(target, mount.path) for target in edge.targets)
            )
            for mount in self.mounts
        }

    @cached_property
    def mount_by_path(self) -> dict[str, Mount]:
        """The included workflows by the path that they hang at."""
        return {mount.path: mount for mount in self.mounts}

    def settings_of(self, node_path: str) -> SettingsPolicy | None:
        """Return the settings that a node sees, None when its workflow declares none."""
        if not self.settings:
            return None
        return policy_of(self.settings, (mount.path for mount in self.mounts), node_path)
