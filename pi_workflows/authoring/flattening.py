"""From a workflow and those that it includes to one flat graph, or to what is wrong with it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pi_workflows.authoring.composition import Exit
from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base.errors import Problem
from pi_workflows.definition.paths import is_node_name, joined
from pi_workflows.definition.snapshot import Edge, Mount, MountExit, Node, Snapshot


@dataclass(frozen=True, slots=True)
class Flattened:
    """A flat definition.

    Attributes:
        snapshot: The graph. A name that leads nowhere stays as it is, for the graph's own checks.
        problems: What is wrong with how the author names included workflows.
    """

    snapshot: Snapshot
    problems: tuple[Problem, ...]


def flattened(workflow: Workflow[Any]) -> Flattened:
    """Return a workflow's graph with those of the included workflows under their names.

    Args:
        workflow: A workflow whose includes are all resolved.
    """
    children = dict(workflow.included())
    names = _Names(workflow.own, children)
    own = workflow.own
    parts = [_mounted(name, child) for name, child in children.items()]
    edges = [names.edge(edge) for edge in own.edges]
    snapshot = own.model_copy(
        update={
            "start_at": names.target("start", own.start_at),
            "nodes": {**own.nodes, **{k: v for part in parts for k, v in part.nodes.items()}},
            "edges": tuple(
                sorted(
                    (*edges, *(edge for part in parts for edge in part.edges)),
                    key=lambda each: each.source,
                )
            ),
            "mounts": tuple(
                sorted((mount for part in parts for mount in part.mounts), key=lambda m: m.path)
            ),
            "settings": _settings(own, parts),
        }
    )
    return Flattened(snapshot, (*_child_problems(workflow, children), *names.problems))


def declared_problems(workflow: Workflow[Any]) -> Iterator[Problem]:
    """Yield what is wrong with a workflow's includes and exits, resolved or not."""
    for name, include in workflow.includes.items():
        where = f"includes.{name}"
        if not is_node_name(name):
            yield Problem("mountInvalid", where, f"{name!r} is no name: use one like a node's")
        if name in workflow.own.nodes:
            yield Problem("mountTwice", where, f"a node is called {name!r} too: rename one of them")
        yield from (replace(problem, where=where) for problem in include.problems)
    for name in workflow.own.nodes:
        if name.partition("/")[0] in workflow.includes and "/" in name:
            yield Problem("nodeInner", f"nodes.{name}", f"{name!r} is inside an included workflow")
    counted = Counter(way.node for way in workflow.exits.values())
    for name, way in workflow.exits.items():
        where = f"exits.{name}"
        if not is_node_name(name):
            yield Problem("exitNameInvalid", where, f"{name!r} is no name: use one like a node's")
        if counted[way.node] > 1:
            yield Problem("exitTwice", where, f"{way.node!r} has another exit: one node, one exit")
        yield from (replace(problem, where=where) for problem in way.problems)
        if not way.problems:
            yield from _exit_problems(workflow, where, way)


class _Names:
    """What the names in a workflow's edges stand for.

    Attributes:
        problems: Names that stand for nothing.
    """

    def __init__(self, own: Snapshot, children: Mapping[str, Workflow[Any]]) -> None:
        self._own = own
        self._children = children
        self.problems: list[Problem] = []

    def edge(self, edge: Edge) -> Edge:
        """Return an edge between nodes."""
        where = f"edges.{edge.source}"
        cases = edge.cases
        return edge.model_copy(
            update={
                "source": self._source(edge.source),
                "to": None if edge.to is None else self.target(where, edge.to),
                "cases": None
                if cases is None
                else {case: self.target(where, name) for case, name in cases.items()},
            }
        )

    def target(self, where: str, name: str) -> str:
        """Return the node that a name leads to."""
        child = self._children.get(name)
        if child is not None:
            return joined(name, child.snapshot.start_at)
        self._check_inner(where, name)
        return name

    def _source(self, name: str) -> str:
        """Return the node that an edge leaves."""
        where = f"edges.{name}"
        if name in self._children:
            ways = ", ".join(f"{name}.{way}" for way in self._children[name].exits) or "none"
            self.problems.append(
                Problem("edgeSourceMount", where, f"leave it by one of its exits: {ways}")
            )
            return name
        mount, dot, way = name.partition(".")
        child = self._children.get(mount)
        if not dot or child is None:
            self._check_inner(where, name)
            return name
        if way not in child.exits:
            self.problems.append(
                Problem(
                    "exitUnknown", where, f"{mount!r} has no exit {way!r}{_meant(way, child.exits)}"
                )
            )
            return name
        return joined(mount, exit_path(child, way))

    def _check_inner(self, where: str, name: str) -> None:
        """Note a name that reaches into an included workflow."""
        mount, *inner = name.replace(".", "/").split("/")
        if inner and mount in self._children:
            self.problems.append(
                Problem(
                    "nodeInner",
                    where,
                    f"{name!r} is inside an included workflow: lead to {mount!r}, and on from its"
                    " exits",
                )
            )


def exit_path(workflow: Workflow[Any], name: str) -> str:
    """Return the path, inside a workflow, of the node that one of its exits ends with."""
    declared = workflow.exits[name]
    mount, dot, inner = declared.node.partition(".")
    child = workflow.includes[mount].workflow if dot and mount in workflow.includes else None
    if child is None or inner not in child.exits:
        return declared.node
    return joined(mount, exit_path(child, inner))


def _mounted(name: str, child: Workflow[Any]) -> Snapshot:
    """Return an included workflow's graph under its name, with its mount among the mounts."""
    inner = child.snapshot
    mount = Mount(
        path=name,
        workflow_name=inner.name,
        contract_id=inner.contract_id,
        input_model=inner.input_model,
        start_at=joined(name, inner.start_at),
        max_steps=inner.max_steps,
        exits={way: _mount_exit(name, child, way) for way in sorted(child.exits)},
    )
    return inner.model_copy(
        update={
            "nodes": {joined(name, path): _node(name, node) for path, node in inner.nodes.items()},
            "edges": tuple(_edge(name, edge) for edge in inner.edges),
            "mounts": (mount, *(_nested(name, each) for each in inner.mounts)),
            "settings": inner.settings
            and tuple(
                policy.model_copy(
                    update={"mount": joined(name, policy.mount) if policy.mount else name}
                )
                for policy in inner.settings
            ),
        }
    )


def _mount_exit(name: str, child: Workflow[Any], way: str) -> MountExit:
    declared = child.exit_model(way)
    return MountExit(
        node=joined(name, exit_path(child, way)),
        output_model=None if declared is None else declared.name,
    )


def _node(name: str, node: Node) -> Node:
    """Return a node whose references to other nodes are full paths."""
    if node.approved_by is None:
        return node
    return node.model_copy(update={"approved_by": joined(name, node.approved_by)})


def _edge(name: str, edge: Edge) -> Edge:
    cases = edge.cases
    return edge.model_copy(
        update={
            "source": joined(name, edge.source),
            "to": None if edge.to is None else joined(name, edge.to),
            "cases": None
            if cases is None
            else {case: joined(name, target) for case, target in cases.items()},
            "scope": name if edge.scope is None else joined(name, edge.scope),
        }
    )


def _nested(name: str, mount: Mount) -> Mount:
    return mount.model_copy(
        update={
            "path": joined(name, mount.path),
            "start_at": joined(name, mount.start_at),
            "exits": {
                way: each.model_copy(update={"node": joined(name, each.node)})
                for way, each in mount.exits.items()
            },
        }
    )


def _settings(own: Snapshot, parts: Iterable[Snapshot]) -> object:
    """Return the settings of all workflows, None when none has any."""
    policies = (*(own.settings or ()), *(p for part in parts for p in part.settings or ()))
    return policies or None


def _child_problems(
    workflow: Workflow[Any], children: Mapping[str, Workflow[Any]]
) -> Iterator[Problem]:
    for name, child in children.items():
        where, include = f"includes.{name}", workflow.includes[name]
        if include.contract_id is not None and include.contract_id != child.own.contract_id:
            yield Problem(
                "includeContractMismatch",
                where,
                f"{child.name!r} declares the contract {child.own.contract_id!r}, not"
                f" {include.contract_id!r}",
            )
        needed = [
            key for key, field in child.input_model.model_fields.items() if field.is_required()
        ]
        if include.function is None and needed:
            yield Problem(
                "includeInputMissing",
                where,
                f"the input needs {', '.join(needed)}: give input=lambda ctx: ...",
            )
    for name, way in workflow.exits.items():
        mount, dot, inner = way.node.partition(".")
        if dot and mount in children and inner not in children[mount].exits:
            yield Problem("exitNodeUnknown", f"exits.{name}", f"{mount!r} has no exit {inner!r}")


def _exit_problems(workflow: Workflow[Any], where: str, way: Exit) -> Iterator[Problem]:
    """Yield what is wrong with one exit."""
    mount, dot, _ = way.node.partition(".")
    known = mount in workflow.includes if dot else way.node in workflow.own.nodes
    if not known:
        near = _meant(way.node, workflow.own.nodes)
        yield Problem("exitNodeUnknown", where, f"no node is called {way.node!r}{near}")
        return
    if any(edge.source == way.node for edge in workflow.own.edges):
        yield Problem("exitNotLast", where, f"an edge leaves {way.node!r}: it is no way out")
    if way.output is None:
        return
    given = _given_model(workflow, way)
    if given is not None and given != way.output.name:
        yield Problem(
            "exitModelMismatch",
            where,
            f"output is {way.output.name}, but {way.node!r} gives {given or 'plain JSON'}: declare"
            " the same model for both",
        )


def _given_model(workflow: Workflow[Any], way: Exit) -> str | None:
    """Return the name of the model that an exit's node gives, empty for none; None if unknown."""
    if "." not in way.node:
        declared = workflow.nodes[way.node].output
        return "" if declared is None else declared.name
    mount, _, inner = way.node.partition(".")
    child = workflow.includes[mount].workflow
    if child is None or inner not in child.exits:
        return None
    declared = child.exit_model(inner)
    return "" if declared is None else declared.name


def _meant(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
