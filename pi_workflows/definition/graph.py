"""What can be wrong with a definition's graph, found all at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from pi_workflows.base.errors import Problem
from pi_workflows.base.limits import (
    EDGE_DELAY_MS_MAX,
    EFFECT_TYPE_CHARS_MAX,
    NODE_NAME_CHARS_MAX,
    NODE_TIMEOUT_MS_MAX,
    NODES_MAX,
    RETRY_ATTEMPTS_MAX,
    RETRY_BACKOFF_MAX,
    RETRY_DELAY_MS_MAX,
    STEPS_MAX,
)
from pi_workflows.definition.composed import composition_problems, visible_names
from pi_workflows.definition.decision import policy_problems
from pi_workflows.definition.forms import case_problems, form_problems
from pi_workflows.definition.paths import (
    RESERVED_NODE_PREFIX,
    RESERVED_WORKFLOW_NAMES,
    ROOT,
    is_contract_id,
    is_node_path,
    is_workflow_name,
)
from pi_workflows.definition.selector import ROUTED_OUTCOMES, parse_selector
from pi_workflows.definition.settings import settings_problems
from pi_workflows.definition.snapshot import Edge, Node, RetryPolicy, Snapshot


def snapshot_problems(snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return everything wrong with a definition that its snapshot shows, in reading order.

    The rules are those of the engine contract, sections 1.2, 1.4 and 1.5. Authors meet them when
    they define a workflow, the server when it reads a snapshot.
    """
    return (
        *_name_problems(snapshot),
        *(
            problem
            for path, node in snapshot.nodes.items()
            for problem in (
                *_node_problems(path, node),
                *form_problems(f"nodes.{path}", node),
            )
        ),
        *_edge_problems(snapshot),
        *_reach_problems(snapshot),
        *composition_problems(snapshot),
        *_approval_problems(snapshot),
        *settings_problems(
            snapshot.settings or (),
            tuple(mount.path for mount in snapshot.mounts),
            {
                path: node.type == "compute"
                for path, node in snapshot.nodes.items()
                if node.settings_route
            },
        ),
    )


def _name_problems(snapshot: Snapshot) -> Iterator[Problem]:
    name = snapshot.name
    if not is_workflow_name(name):
        yield Problem(
            "nameInvalid",
            "name",
            f"{name!r} is no workflow name: use 1-64 lower-case letters, digits and hyphens, not a"
            " hyphen first",
        )
    elif name in RESERVED_WORKFLOW_NAMES:
        yield Problem("nameReserved", "name", f"{name!r} is a command's name: choose another")
    if snapshot.contract_id is not None and not is_contract_id(snapshot.contract_id):
        yield Problem(
            "contractIdInvalid",
            "contract_id",
            f"{snapshot.contract_id!r}: use 1-128 letters, digits, '.', '_', ':' and '-', a letter"
            " or digit first",
        )
    if not 1 <= snapshot.max_steps <= STEPS_MAX:
        yield Problem(
            "maxStepsInvalid", "max_steps", f"{snapshot.max_steps}: use 1 to {STEPS_MAX:,}"
        )
    if not snapshot.nodes:
        yield Problem("nodesMissing", "nodes", "there is no node: a workflow has at least one")
    elif len(snapshot.nodes) > NODES_MAX:
        yield Problem(
            "nodesTooMany", "nodes", f"{len(snapshot.nodes):,} nodes; at most {NODES_MAX:,}"
        )


def _node_problems(path: str, node: Node) -> Iterator[Problem]:
    where = f"nodes.{path}"
    if not is_node_path(path):
        yield Problem(
            "nodeNameInvalid",
            where,
            f"{path!r} is no node name: use letters, digits, '_' and '-', a letter or '_' first,"
            f" at most {NODE_NAME_CHARS_MAX} characters, and not {RESERVED_NODE_PREFIX!r} first",
        )
    if node.timeout_ms is not None and not 0 <= node.timeout_ms <= NODE_TIMEOUT_MS_MAX:
        yield Problem(
            "timeoutInvalid",
            where,
            f"timeout: {node.timeout_ms} ms; use 0 to {NODE_TIMEOUT_MS_MAX} ms",
        )
    if (node.effect is not None) != (node.type == "action"):
        yield Problem("effectMisplaced", where, "an action, and only an action, has an effect")
    if node.effect is not None and not 1 <= len(node.effect.type) <= EFFECT_TYPE_CHARS_MAX:
        yield Problem(
            "effectTypeInvalid", where, f"effect type: use 1 to {EFFECT_TYPE_CHARS_MAX} characters"
        )
    if node.retry is not None:
        yield from _retry_problems(where, node, node.retry)
    if node.human_decision is not None:
        if node.type != "checkpoint":
            yield Problem("decisionMisplaced", where, "only a checkpoint has a person decide")
        for problem in policy_problems(node.human_decision):
            yield Problem("decisionInvalid", where, problem)


def _approval_problems(snapshot: Snapshot) -> Iterator[Problem]:
    for path, node in snapshot.nodes.items():
        if node.approved_by is None:
            continue
        where = f"nodes.{path}"
        if node.type != "action":
            yield Problem("approvalMisplaced", where, "approved_by: only an action is approved")
        asked = snapshot.nodes.get(node.approved_by)
        if asked is None:
            meant = _meant(node.approved_by, snapshot)
            yield Problem(
                "approvalUnknown",
                where,
                f"approved_by: no node is called {node.approved_by!r}{meant}",
            )
        elif asked.human_decision is None:
            yield Problem(
                "approvalUnknown",
                where,
                f"approved_by: {node.approved_by!r} is no human_decision(...)",
            )


def _retry_problems(where: str, node: Node, retry: RetryPolicy) -> Iterator[Problem]:
    if node.effect is not None and node.effect.recovery == "manual":
        yield Problem(
            "retryManualEffect",
            where,
            "retry: a manual effect is never repeated by itself; drop the retry, or declare the"
            " effect with idempotent_effect(...) if repeating it is harmless",
        )
    if node.type == "checkpoint":
        yield Problem(
            "retryMisplaced",
            where,
            "retry: a checkpoint waits for its answer and is not tried again",
        )
    if not 1 <= retry.max_attempts <= RETRY_ATTEMPTS_MAX:
        yield Problem(
            "retryInvalid",
            where,
            f"retry: max_attempts={retry.max_attempts}; use 1 to {RETRY_ATTEMPTS_MAX:,}",
        )
    if not retry.on or len(set(retry.on)) != len(retry.on):
        yield Problem(
            "retryInvalid", where, "retry: on names 'failed', 'timed_out' or both, each once"
        )
    if not 0 <= retry.delay_ms <= RETRY_DELAY_MS_MAX:
        yield Problem("retryInvalid", where, "retry: use a delay of 0 to 7 days")
    if not math.isfinite(retry.backoff) or not 1 <= retry.backoff <= RETRY_BACKOFF_MAX:
        yield Problem(
            "retryInvalid", where, f"retry: backoff={retry.backoff}; use 1 to {RETRY_BACKOFF_MAX:g}"
        )


def _edge_problems(snapshot: Snapshot) -> Iterator[Problem]:
    counted = Counter(edge.source for edge in snapshot.edges)
    for source, count in counted.items():
        if source not in snapshot.nodes:
            yield Problem(
                "edgeSourceUnknown",
                f"edges.{source}",
                f"no node is called {source!r}{_meant(source, snapshot)}",
            )
        if count > 1:
            yield Problem(
                "edgeTwice",
                f"edges.{source}",
                f"{count} edges leave {source!r}: one is allowed; use switch(...) to choose between"
                " targets",
            )
    for edge in snapshot.edges:
        where = f"edges.{edge.source}"
        for target in dict.fromkeys(edge.targets):
            if target not in snapshot.nodes:
                yield Problem(
                    "edgeTargetUnknown",
                    where,
                    f"leads to {target!r}, but no node is called so{_meant(target, snapshot)}",
                )
        yield from _switch_problems(where, edge)
        yield from _delay_problems(where, edge)
        if edge.source in snapshot.nodes:
            yield from case_problems(where, edge, snapshot.nodes[edge.source])


def _switch_problems(where: str, edge: Edge) -> Iterator[Problem]:
    if (edge.to is None) == (edge.on is None) or (edge.on is None) != (edge.cases is None):
        yield Problem("edgeInvalid", where, "an edge has either one target, or `on` with `cases`")
        return
    if edge.on is None or edge.cases is None:
        return
    if not edge.cases:
        yield Problem("switchCasesMissing", where, "the switch has no case: it could only fail")
    selector = parse_selector(edge.on)
    if selector is None:
        yield Problem(
            "switchPathInvalid",
            where,
            f"on={edge.on!r}: write '$.field' or '$output.field' for the output, or"
            " '$result.outcome'",
        )
    elif selector.source == "result":
        for case in edge.cases:
            yield from _outcome_problems(where, case)


def _delay_problems(where: str, edge: Edge) -> Iterator[Problem]:
    if edge.delay is None:
        return
    if edge.to is None:
        yield Problem("edgeDelayInvalid", where, "delay: only a plain edge waits, no switch")
    if isinstance(edge.delay, int):
        if not 0 < edge.delay <= EDGE_DELAY_MS_MAX:
            yield Problem("edgeDelayInvalid", where, "delay: use more than 0, at most 7 days")
        return
    selector = parse_selector(edge.delay)
    if selector is None or selector.source != "output":
        yield Problem(
            "edgeDelayInvalid",
            where,
            f"delay={edge.delay!r}: write '$.field' for milliseconds in the output, or a timedelta",
        )


def _outcome_problems(where: str, case: str) -> Iterator[Problem]:
    if case == "cancelled":
        yield Problem(
            "switchCaseCancelled",
            where,
            "a case for 'cancelled' is never taken: a cancelled node ends its run; drop it",
        )
    elif case not in ROUTED_OUTCOMES:
        yield Problem(
            "switchOutcomeUnknown",
            where,
            f"{case!r} is no outcome: $result.outcome is 'ok', 'failed' or 'timed_out'",
        )


def _reach_problems(snapshot: Snapshot) -> Iterator[Problem]:
    start = snapshot.start_at
    if start not in snapshot.nodes:
        if snapshot.nodes:
            yield Problem(
                "startUnknown", "start", f"no node is called {start!r}{_meant(start, snapshot)}"
            )
        return
    targets: dict[str, list[str]] = {}
    for edge in snapshot.edges:
        targets.setdefault(edge.source, []).extend(edge.targets)
    reached = {start}
    waiting = [start]
    while waiting:
        for target in targets.get(waiting.pop(), ()):
            if target in snapshot.nodes and target not in reached:
                reached.add(target)
                waiting.append(target)
    for path in snapshot.nodes:
        if path not in reached:
            yield Problem(
                "nodeUnreachable",
                f"nodes.{path}",
                f"no edge leads here from {start!r}: add one, or drop the node",
            )


def _meant(name: str, snapshot: Snapshot, scope: str = ROOT) -> str:
    """Return a hint at the node that was probably meant, or nothing."""
    import difflib  # noqa: PLC0415 - only for an error, and the server need not load it

    near = difflib.get_close_matches(name, visible_names(snapshot, scope), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
