"""A patch of settings: the standard's operations, and who may do what where.

RFC 6902 and RFC 6901 are the library's business. Ours are the limits, the permissions and what JSON
values are: canonical ones, in which `true` is not 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointerException

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import AuthorityDenied, LimitExceeded, PayloadInvalid
from pi_workflows.base.limits import (
    SETTINGS_BYTES_MAX,
    SETTINGS_OPERATIONS_MAX,
    SETTINGS_PATCH_BYTES_MAX,
)
from pi_workflows.definition.settings import (
    ActorClass,
    PathRule,
    Permission,
    SettingsPolicy,
    Tokens,
    tokens_of,
)

# The library knows further ones, which the standard does not.
_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "add": frozenset({"op", "path", "value"}),
    "remove": frozenset({"op", "path"}),
    "replace": frozenset({"op", "path", "value"}),
    "move": frozenset({"op", "from", "path"}),
    "copy": frozenset({"op", "from", "path"}),
    "test": frozenset({"op", "path", "value"}),
}
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class _Operation:
    """One operation, read.

    Attributes:
        place: What errors call it.
        op: What it does.
        target: Where.
        origin: Where it takes its value from; None when it takes none.
        document: The operation itself.
    """

    place: str
    op: str
    target: Tokens
    origin: Tokens | None
    document: dict[str, Json]


def patched(value: Json, patch: Json, policy: SettingsPolicy, actor: ActorClass) -> Json:
    """Return settings after a patch, which their actor must be allowed in every part.

    Args:
        value: The settings; unchanged afterwards.
        patch: The patch.
        policy: Their rules.
        actor: As whom the server knows the one who asks.

    Returns:
        The new settings.

    Raises:
        PayloadInvalid: `patchInvalid`, `pointerInvalid`: it is no patch, or does not fit the value.
        AuthorityDenied: `settingsDenied`: an operation does what the actor may not do there.
        LimitExceeded: `patchTooLarge`, `settingsTooLarge`.
    """
    rules = _Rules(policy, actor)
    # Decoded anew, so that nothing of the caller's is shared with what is changed in place.
    current = canonical.decode(canonical.encode(value))
    for operation in operations_of(patch):
        rules.require(operation, current)
        before = rules.elsewhere(operation, current)
        current = _applied(operation, current)
        rules.require_elsewhere(operation, before, current)
        if operation.op == "copy":
            # The one operation that makes settings grow by more than the patch holds.
            _require_size(current)
    _require_size(current)
    return current


def operations_of(patch: Json) -> list[_Operation]:
    """Read a patch.

    Args:
        patch: The patch as it came.

    Returns:
        Its operations.

    Raises:
        PayloadInvalid: `patchInvalid` or `pointerInvalid`, with the operation's place.
        LimitExceeded: `patchTooLarge`.
    """
    if not isinstance(patch, list) or not patch:
        raise _invalid("patch", "a patch is a list of at least one operation")
    size = len(canonical.encode(patch, field="patch"))
    if size > SETTINGS_PATCH_BYTES_MAX or len(patch) > SETTINGS_OPERATIONS_MAX:
        raise LimitExceeded(
            f"patch: {size:,} bytes in {len(patch)} operations; at most"
            f" {SETTINGS_PATCH_BYTES_MAX:,} in {SETTINGS_OPERATIONS_MAX}",
            code="patchTooLarge",
            field="patch",
        )
    return [_operation(f"patch[{index}]", document) for index, document in enumerate(patch)]


def _operation(place: str, document: Json) -> _Operation:
    """Read one operation: the members that the standard gives it, and sound pointers.

    Further members mean nothing (RFC 6902, section 4).
    """
    if not isinstance(document, dict):
        raise _invalid(place, "an operation is an object")
    op = document.get("op")
    members = _MEMBERS.get(op) if isinstance(op, str) else None
    if not isinstance(op, str) or members is None:
        raise _invalid(f"{place}.op", f"use one of {', '.join(_MEMBERS)}")
    if not members <= set(document):
        raise _invalid(place, f"{op} has the members {', '.join(sorted(members))}")
    origin = _pointer(document["from"], f"{place}.from") if "from" in members else None
    target = _pointer(document["path"], f"{place}.path")
    return _Operation(place, op, target, origin, document)


def _pointer(value: Json, place: str) -> Tokens:
    if not isinstance(value, str):
        raise _invalid(place, "a pointer is text")
    return tokens_of(value, field=place)


def _applied(operation: _Operation, value: Json) -> Json:
    """Let the library apply one operation, in place; a test compares canonical values besides."""
    try:
        result = cast("Json", JsonPatch([operation.document]).apply(value, in_place=True))
    except (JsonPatchException, JsonPointerException):
        reason = "the value there is another one"
        if operation.op != "test":
            reason = "does not fit the settings: what it names is not there, or cannot hold it"
        raise _invalid(operation.place, reason) from None
    if operation.op == "test":
        found = value_at(result, operation.target)
        if not _is_same(found, operation.document["value"]):
            raise _invalid(operation.place, "the value there is another one")
    return result


def value_at(value: Json, tokens: Tokens) -> object:
    """Return what stands at a place of a value, or a mark that nothing does.

    Args:
        value: The value.
        tokens: The place; `-` names no item.
    """
    current: Json = value
    for token in tokens:
        if isinstance(current, dict) and token in current:
            current = current[token]
        elif isinstance(current, list) and _is_index(token) and int(token) < len(current):
            current = current[int(token)]
        else:
            return _ABSENT
    return current


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and (len(text) == 1 or not text.startswith("0"))


def _is_same(one: object, other: object) -> bool:
    """Whether two values, either of which may be absent, are the same JSON."""
    if one is _ABSENT or other is _ABSENT:
        return one is other
    return canonical.encode(cast("Json", one)) == canonical.encode(cast("Json", other))


class _Rules:
    """The rules of some settings, for one actor.

    The most specific rule that covers a place decides alone. An operation above or beside places
    with rules of their own needs their permission too, for what it does to them: whoever may
    replace the whole may not thereby replace a part that is another's.
    """

    def __init__(self, policy: SettingsPolicy, actor: ActorClass) -> None:
        self._actor: ActorClass = actor
        self._rules: Mapping[Tokens, PathRule] = {
            tokens_of(rule.pointer, field="pointer"): rule for rule in policy.paths
        }

    def require(self, operation: _Operation, value: Json) -> None:
        """Refuse an operation whose own places its rules do not allow."""
        target, origin = operation.target, operation.origin
        if operation.op == "test":
            self._require_read(operation, target, value)
            return
        if origin is not None:
            self._require_read(operation, origin, value)
        if operation.op == "move" and origin is not None:
            self._require(operation, origin, "remove")
        self._require(operation, target, _permission(operation, value))

    def _require_read(self, operation: _Operation, place: Tokens, value: Json) -> None:
        """Refuse to look at a place, or at a place below it that has a rule of its own."""
        self._require(operation, place, "read")
        for below in self._rules:
            if below[: len(place)] == place and value_at(value, below) is not _ABSENT:
                self._require(operation, below, "read")

    def elsewhere(self, operation: _Operation, value: Json) -> dict[Tokens, bytes | None]:
        """Return what stands at places with rules of their own that an operation may touch."""
        if operation.op == "test":
            return {}
        changed = [operation.target, *([operation.origin] if operation.op == "move" else [])]
        touched = {
            place
            for place in self._rules
            for each in changed
            if each is not None and _may_touch(each, place, value)
        }
        return {place: _content(value_at(value, place)) for place in touched}

    def require_elsewhere(
        self, operation: _Operation, before: Mapping[Tokens, bytes | None], value: Json
    ) -> None:
        """Refuse an operation that changed such a place without its rule's permission."""
        for place, content in before.items():
            now = _content(value_at(value, place))
            if now == content:
                continue
            permission: Permission = "replace"
            if content is None or now is None:
                permission = "add" if content is None else "remove"
            self._require(operation, place, permission)

    def _require(self, operation: _Operation, place: Tokens, permission: Permission) -> None:
        rule = next(self._covering(place), None)
        if rule is None or not rule.allows(permission, self._actor):
            name = "".join(f"/{token}" for token in place) or "the whole"
            raise AuthorityDenied(
                f"{operation.place}: {self._actor} may not {permission} {name:.80}.",
                code="settingsDenied",
                field=operation.place,
                hint="See who may change what: pi-workflows settings RUN",
            )

    def _covering(self, place: Tokens) -> Iterator[PathRule]:
        """Yield the rules at and above a place, the most specific first."""
        for length in range(len(place), -1, -1):
            rule = self._rules.get(place[:length])
            if rule is not None:
                yield rule


def _permission(operation: _Operation, value: Json) -> Permission:
    """Say what an operation does at its target: to add where a member stands is to replace it."""
    match operation.op:
        case "remove":
            return "remove"
        case "replace":
            return "replace"
        case _:
            holder = value_at(value, operation.target[:-1])
            is_insertion = isinstance(holder, list) and bool(operation.target)
            is_new = value_at(value, operation.target) is _ABSENT
            return "add" if is_new or is_insertion else "replace"


def _may_touch(changed: Tokens, place: Tokens, value: Json) -> bool:
    """Whether a change may change what stands at another place: below it, or behind it in a list.

    Args:
        changed: Where something changes.
        place: The other place.
        value: The value before.
    """
    if place == changed or changed[: len(place)] == place:
        # The place itself, or one above it: the most specific rule has decided.
        return False
    common = next(
        (at for at, pair in enumerate(zip(changed, place, strict=False)) if pair[0] != pair[1]),
        len(changed),
    )
    return common == len(changed) or isinstance(value_at(value, changed[:common]), list)


def _content(value: object) -> bytes | None:
    """Return a value's canonical bytes, None when it is absent."""
    return None if value is _ABSENT else canonical.encode(cast("Json", value))


def _require_size(value: Json) -> None:
    """Refuse settings that are too large, or too deep."""
    size = len(canonical.encode(value, field="settings"))
    if size > SETTINGS_BYTES_MAX:
        raise LimitExceeded(
            f"settings: {size:,} bytes; at most {SETTINGS_BYTES_MAX:,}",
            code="settingsTooLarge",
            field="settings",
            hint="Put large data into a file and keep its path.",
        )


def _invalid(place: str, reason: str) -> PayloadInvalid:
    return PayloadInvalid(f"{place}: {reason}", code="patchInvalid", field=place)
