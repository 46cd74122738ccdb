"""A workflow's settings: what people may change about a run while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel

from pi_workflows.authoring.declared import function_problems
from pi_workflows.authoring.nodes import plain_json
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, Problem, ProblemsFound
from pi_workflows.base.limits import SETTINGS_BYTES_MAX
from pi_workflows.definition.settings import ActorClass, PathRule, SettingsPolicy, tokens_of

ModelT = TypeVar("ModelT", bound=BaseModel)
ModelT_co = TypeVar("ModelT_co", bound=BaseModel, covariant=True)

_ACTORS = frozenset(
    {"session", "host", "controller", "channel", "human", "policy", "control", "system"}
)


@dataclass(frozen=True, slots=True)
class SettingsChange(Generic[ModelT_co]):
    """A change that somebody asks for, as `validate_change` sees it.

    Attributes:
        before: The settings as they stand.
        after: What they would be.
        actor: As whom the server knows the one who asks: `session` is a model, `human` a person.
    """

    before: ModelT_co
    after: ModelT_co
    actor: ActorClass


@dataclass(frozen=True, slots=True)
class Allowed:
    """What `allow` returns: a rule about a part of the settings, and its mistakes."""

    rule: PathRule
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, eq=False)
class Settings(Generic[ModelT_co]):
    """What `workflow_settings` returns.

    Attributes:
        model: Their model.
        initial: Makes the first value of the workflow's input.
        paths: Who may change what.
        validate_change: The author's word on a change; whatever it raises refuses it.
        problems: Mistakes that the constructors found.
    """

    model: OutputModel
    initial: Callable[[Any], object]
    paths: tuple[PathRule, ...]
    validate_change: Callable[[SettingsChange[Any]], object] | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def policy(self) -> SettingsPolicy:
        """What the definition says of them, for the workflow itself."""
        return SettingsPolicy(mount="", model=self.model.name, paths=self.paths)

    def initial_json(self, value: object) -> Json:
        """Return what `initial` made, checked, as JSON.

        Raises:
            ProblemsFound: It does not fit the model.
            LimitExceeded: It is over 256 KiB.
        """
        made = self.model.json(value, field="settings")
        self._require_size(made)
        return made

    def value(self, stored: Json) -> ModelT_co:
        """Return stored settings as the author's functions see them."""
        return cast("ModelT_co", self.model.value(stored, field="settings"))

    def accept_change(self, before: Json, after: Json, actor: ActorClass) -> Json:
        """Return changed settings if the model and the author accept them, as they are.

        Args:
            before: The settings as they stand.
            after: What a patch made of them.
            actor: Who asks.

        Raises:
            ProblemsFound: `settingsInvalid`: the model refuses the value, or would change it.
            Exception: Whatever the author's function raises.
        """
        field, code = "settings", "settingsInvalid"
        changed = self.model.accept(after, field=field, code=code)
        dumped = plain_json(changed) if isinstance(changed, BaseModel) else after
        if canonical.encode(dumped, field=field) != canonical.encode(after, field=field):
            message = "the model reads it as another value: write it as the model does"
            raise ProblemsFound([Problem(code, field, message)], code=code)
        self._require_size(after)
        if self.validate_change is not None:
            now = self.model.value(before, field=field)
            change = SettingsChange(cast("BaseModel", now), cast("BaseModel", changed), actor)
            if self.validate_change(change) is False:
                raise ProblemsFound([Problem(code, field, "the workflow refuses it")], code=code)
        return after

    def _require_size(self, value: Json) -> None:
        size = len(canonical.encode(value, field="settings"))
        if size > SETTINGS_BYTES_MAX:
            message = f"{size:,} bytes; at most {SETTINGS_BYTES_MAX:,}"
            raise ProblemsFound([Problem("settingsTooLarge", "settings", message)])


def allow(
    pointer: str,
    *,
    read: Iterable[ActorClass] = (),
    add: Iterable[ActorClass] = (),
    remove: Iterable[ActorClass] = (),
    replace: Iterable[ActorClass] = (),
) -> Allowed:
    """Let classes of actors do something at and below a pointer; all else is denied.

    Of the rules that cover a place the one with the longest pointer decides alone.

    Args:
        pointer: A JSON Pointer into the settings, such as `/merge`; empty for all of them.
        read: Who may test and copy what stands there.
        add: Who may add members or items.
        remove: Who may remove them.
        replace: Who may replace them.

    Returns:
        The rule, for `workflow_settings(paths=[...])`. The classes: `human` (a person who proved
        the passphrase), `control` (the command line and other local programs), `session` (a model),
        `host`, `controller`, `channel`, `policy`, `system`.
    """
    problems: list[Problem] = []
    given = {"read": read, "add": add, "remove": remove, "replace": replace}
    classes: dict[str, tuple[ActorClass, ...]] = {}
    for name, actors in given.items():
        listed = (actors,) if isinstance(actors, str) else tuple(actors)
        unknown = [actor for actor in listed if actor not in _ACTORS]
        if unknown or isinstance(actors, str):
            problems.append(
                Problem(
                    "settingsActorUnknown",
                    "settings",
                    f"{name}={actors!r:.60}: use a list of {', '.join(sorted(_ACTORS))}",
                )
            )
        known = (actor for actor in listed if actor in _ACTORS)
        classes[name] = tuple(cast("ActorClass", actor) for actor in known)
    place = pointer if isinstance(cast("object", pointer), str) else ""
    try:
        tokens_of(place, field="pointer")
    except PayloadInvalid as error:
        problems.append(Problem("settingsPointerInvalid", "settings", error.message))
        place = ""
    if not isinstance(cast("object", pointer), str):
        problems.append(
            Problem("settingsPointerInvalid", "settings", f"pointer: {pointer!r:.60} is no text")
        )
    rule = PathRule(
        pointer=place,
        read=classes["read"],
        add=classes["add"],
        remove=classes["remove"],
        replace=classes["replace"],
    )
    return Allowed(rule, tuple(problems))


def workflow_settings(
    model: type[ModelT],
    *,
    initial: Callable[[Any], ModelT],
    paths: Iterable[Allowed] = (),
    validate_change: Callable[[SettingsChange[ModelT]], object] | None = None,
) -> Settings[ModelT]:
    """Give a workflow settings that people may change while a run goes on.

    Args:
        model: Their pydantic model. It may refuse a value but not change it. No secrets: everybody
            who sees the run sees them.
        initial: Makes their first value of the workflow's input.
        paths: Who may change what, each made with `allow`; what no rule allows is denied.
        validate_change: Has the last word on a change: raises ValueError, or returns False, to
            refuse it.

    Returns:
        The settings, for `define_workflow(settings=...)`. A node's function reads `ctx.settings`,
        an instance of the model that stays as it is for the whole attempt.
    """
    listed = tuple(paths)
    rules = [path for path in listed if isinstance(cast("object", path), Allowed)]
    problems = [
        *(problem for path in rules for problem in path.problems),
        *function_problems(initial, "initial"),
        *(function_problems(validate_change, "validate_change") if validate_change else ()),
    ]
    if len(rules) != len(listed):
        problems.append(Problem("settingsPathInvalid", "settings", "paths: use allow(...)"))
    given = cast("object", model)
    if not (isinstance(given, type) and issubclass(given, BaseModel)):
        problems.append(
            Problem(
                "settingsNotModel",
                "settings",
                f"{model!r:.60}: use a class that extends pydantic.BaseModel",
            )
        )
        return Settings(OutputModel.of(BaseModel), initial, (), problems=tuple(problems))
    return Settings(
        OutputModel.of(model),
        initial,
        tuple(path.rule for path in rules if not path.problems),
        validate_change,
        tuple(problems),
    )
