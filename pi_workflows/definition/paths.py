"""Names of workflows and nodes, and the paths of nodes (the engine contract, section 1.2)."""

from __future__ import annotations

import re
from typing import Final

from pi_workflows.base.limits import NODE_NAME_CHARS_MAX, WORKFLOW_NAME_CHARS_MAX

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
