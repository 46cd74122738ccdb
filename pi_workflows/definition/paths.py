"""Names of workflows and nodes, and the paths of nodes (the engine contract, section 1.2)."""

from __future__ import annotations

import re
from typing import Final

from pi_workflows.base.limits import NODE_NAME_CHARS_MAX, WORKFLOW_NAME_CHARS_MAX

ROOT: Final = ""
"""The path of the workflow that is not included anywhere."""

RESERVED_NODE_PREFIX: Final = "__piw_"
RESERVED_WORKFLOW_NAMES: Final = frozenset(
    {
        "answer",
        "cancel",
        "change-settings",
        "clear",
        "list",
        "pause",
        "queue-follow-up",
        "remove-follow-up",
        "restart",
        "resume",
        "start",
        "status",
        "submit",
        "update",
    }
)

_WORKFLOW_NAME = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{WORKFLOW_NAME_CHARS_MAX - 1}}}")
_NODE_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_-]{{0,{NODE_NAME_CHARS_MAX - 1}}}")
_CONTRACT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def is_workflow_name(text: str) -> bool:
    """Return whether the text has the form of a workflow name; a reserved one has it too."""
    return _WORKFLOW_NAME.fullmatch(text) is not None


def is_node_name(text: str) -> bool:
    """Return whether the text may name a node, a mount or an exit."""
    return _NODE_NAME.fullmatch(text) is not None and not text.startswith(RESERVED_NODE_PREFIX)


def is_node_path(text: str) -> bool:
    """Return whether the text is a compiled node path: node names joined by `/`."""
    return all(is_node_name(part) for part in text.split("/"))


def is_contract_id(text: str) -> bool:
    """Return whether the text may be the contract that an includer asks for."""
    return _CONTRACT_ID.fullmatch(text) is not None


def scope_of(path: str) -> str:
    """Return the mount that a node or mount stands in, empty for the root."""
    return path.rpartition("/")[0]


def local_name(path: str) -> str:
    """Return what the workflow that a node or mount stands in calls it."""
    return path.rpartition("/")[2]


def joined(scope: str, name: str) -> str:
    """Return the full path of what a mount's workflow calls so."""
    return f"{scope}/{name}" if scope else name


def mounts_of(path: str) -> tuple[str, ...]:
    """Return the mounts that a node or mount stands in, from the outermost to its own."""
    names = path.split("/")[:-1]
    return tuple("/".join(names[: depth + 1]) for depth in range(len(names)))


def is_within(path: str, mount: str) -> bool:
    """Return whether a node or mount is the mount itself or stands anywhere inside it."""
    return mount in (ROOT, path) or path.startswith(f"{mount}/")
