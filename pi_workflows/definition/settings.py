"""Who may change which part of a workflow's settings: the policy that its definition declares.

The engine contract, section 4: pointers are denied unless a rule allows them, and of the rules that
cover a pointer the most specific one decides alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from jsonpointer import JsonPointer, JsonPointerException

from pi_workflows.base.errors import PayloadInvalid, Problem
from pi_workflows.base.limits import SETTINGS_POINTER_BYTES_MAX, SETTINGS_RULES_MAX
from pi_workflows.definition.document import Document

ActorClass: TypeAlias = Literal[
    "session", "host", "controller", "channel", "human", "policy", "control", "system"
]
"""As whom the server knows somebody who asks."""

Permission: TypeAlias = Literal["read", "add", "remove", "replace"]
"""What may be done at a pointer."""

Tokens: TypeAlias = tuple[str, ...]
"""A JSON Pointer's reference tokens, unescaped; none for the whole document."""


class PathRule(Document):
    """What may be done at and below a pointer, and by whom.

    Attributes:
        pointer: A JSON Pointer (RFC 6901) into the settings; empty for all of them.
        read: Who may test and copy what stands there.
        add: Who may add a member or an item.
        remove: Who may remove one.
        replace: Who may replace one.
    """

    pointer: str
    read: tuple[ActorClass, ...] = ()
    add: tuple[ActorClass, ...] = ()
    remove: tuple[ActorClass, ...] = ()
    replace: tuple[ActorClass, ...] = ()

    def allows(self, permission: Permission, actor: ActorClass) -> bool:
        """Whether the rule lets an actor of a class do something."""
        match permission:
            case "read":
                return actor in self.read
            case "add":
                return actor in self.add
            case "remove":
                return actor in self.remove
            case "replace":
                return actor in self.replace


class SettingsPolicy(Document):
    """The settings of one workflow of a composition.

    Attributes:
        mount: The workflow's mount; empty for the root.
        model: The qualified name of their model.
        paths: The rules, as the author wrote them.
    """

    mount: str
    model: str
    paths: tuple[PathRule, ...] = ()


def tokens_of(pointer: str, *, field: str) -> Tokens:
    """Return the reference tokens of a JSON Pointer.

    Args:
        pointer: The pointer.
        field: What an error calls it.

    Returns:
        The tokens, unescaped.

    Raises:
        PayloadInvalid: `pointerInvalid`: it is no pointer, or over 1 KiB.
    """
    if len(pointer.encode("utf-8", "surrogatepass")) > SETTINGS_POINTER_BYTES_MAX:
        raise PayloadInvalid(
            f"{field}: a pointer has at most {SETTINGS_POINTER_BYTES_MAX:,} bytes",
            code="pointerInvalid",
            field=field,
        )
    try:
        return tuple(JsonPointer(pointer).parts)
    except JsonPointerException:
        raise PayloadInvalid(
            f"{field}: {pointer!r:.60} is no JSON Pointer: begin with '/', and write '~0' for '~'"
            " and '~1' for '/'",
            code="pointerInvalid",
            field=field,
        ) from None


def mount_of(mounts: Iterable[str], node_path: str) -> str:
    """Return the workflow of a composition that declares a node: the deepest mount above it.

    Args:
        mounts: The paths of the mounts.
        node_path: The node's full path.

    Returns:
        The mount's path; empty for a node of the root workflow.
    """
    above = [mount for mount in mounts if node_path.startswith(f"{mount}/")]
    return max(above, key=len, default="")


def policy_of(
    policies: Iterable[SettingsPolicy], mounts: Iterable[str], node_path: str
) -> SettingsPolicy | None:
    """Return the settings that a node sees: those of the workflow that declares it, if it has any.

    Args:
        policies: Those of the definition.
        mounts: The paths of its mounts.
        node_path: The node's full path.
    """
    mount = mount_of(mounts, node_path)
    return next((policy for policy in policies if policy.mount == mount), None)


def settings_problems(
    policies: tuple[SettingsPolicy, ...], mounts: tuple[str, ...], routes: Mapping[str, bool]
) -> Iterator[Problem]:
    """Yield everything wrong with the settings of a definition.

    Args:
        policies: Its settings.
        mounts: The paths of its mounts.
        routes: Its nodes that are settings routes, and whether each is a compute node.
    """
    known = {"", *mounts}
    for policy in policies:
        where = f"{policy.mount}.settings" if policy.mount else "settings"
        if policy.mount not in known:
            yield Problem("settingsMountUnknown", where, f"there is no mount {policy.mount!r:.60}")
        yield from _rule_problems(where, policy)
    for mount, count in Counter(policy.mount for policy in policies).items():
        if count > 1:
            yield Problem(
                "settingsRepeated", "settings", f"{mount!r:.60} has settings {count} times"
            )
    for path, is_compute in routes.items():
        if not is_compute:
            yield Problem(
                "settingsRouteKind", f"nodes.{path}", "a settings route is a compute node"
            )
        elif policy_of(policies, mounts, path) is None:
            yield Problem(
                "settingsMissing",
                f"nodes.{path}",
                "a settings route needs settings: define_workflow(settings=workflow_settings(...))",
            )


def _rule_problems(where: str, policy: SettingsPolicy) -> Iterator[Problem]:
    if len(policy.paths) > SETTINGS_RULES_MAX:
        yield Problem(
            "settingsRulesTooMany",
            where,
            f"{len(policy.paths)} paths; at most {SETTINGS_RULES_MAX}",
        )
    seen: set[Tokens] = set()
    for rule in policy.paths:
        try:
            tokens = tokens_of(rule.pointer, field="pointer")
        except PayloadInvalid as error:
            yield Problem("settingsPointerInvalid", where, error.message)
            continue
        if tokens in seen:
            yield Problem(
                "settingsPointerRepeated", where, f"{rule.pointer!r:.60} stands there twice"
            )
        seen.add(tokens)
