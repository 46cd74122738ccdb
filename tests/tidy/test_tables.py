"""The tables that must be complete: events and their routes, errors and their codes."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from pi_workflows.base import limits
from pi_workflows.base.errors import WorkflowsError
from pi_workflows.domain.events import EVENTS
from pi_workflows.domain.fact import Event
from projections.route import ROUTE
from tests.tidy.repository import modules

_CODE = re.compile(r"[a-z][A-Za-z]*")
_WORD = re.compile(r"\w+")
_EVENT_TYPE = re.compile(r"[a-z_]+\.[a-z_]+")


def _import_all(package: str) -> None:
    """Import every module of a package, so that its classes are known."""
    for each in modules():
        if each.path.startswith(f"{package}/"):
            dotted = each.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            importlib.import_module(dotted)


def _is_product(kind: type) -> bool:
    """Say whether a class belongs to the product and not to a test."""
    return kind.__module__.startswith("pi_workflows.")


def _events_below(kind: type[Event]) -> Iterator[type[Event]]:
    """Yield the kinds of event that derive from this one and have none below themselves."""
    heirs = [each for each in kind.__subclasses__() if _is_product(each)]
    for each in heirs:
        yield from _events_below(each)
    if not heirs:
        yield kind


def _errors_below(kind: type[WorkflowsError]) -> Iterator[type[WorkflowsError]]:
    """Yield every error that derives from this one."""
    for each in kind.__subclasses__():
        if _is_product(each):
            yield each
            yield from _errors_below(each)


def unrouted(
    found: Iterable[type], known: Collection[type], routed: Collection[type]
) -> Iterator[str]:
    """Find event classes that are not read from the log, or go through no projector.

    Args:
        found: The classes that exist.
        known: Those that the log's reader knows.
        routed: Those that have a route.
    """
    for kind in found:
        if kind not in known:
            yield f"{kind.__name__}: no stored type leads to it"
        if kind not in routed:
            yield f"{kind.__name__}: no route"
    for kind in routed:
        if kind not in known:
            yield f"{kind.__name__}: a route, but no stored type"


def unused_limits(limits: Iterable[str], texts: Iterable[str]) -> Iterator[str]:
    """Find limits that bound nothing.

    Args:
        limits: Their names.
        texts: The sources of the modules that may use them.
    """
    words = set[str]().union(*(_WORD.findall(text) for text in texts))
    yield from (f"{name} bounds nothing" for name in limits if name not in words)


def undocumented(errors: Iterable[type[WorkflowsError]]) -> Iterator[str]:
    """Find errors whose code is not theirs alone, or whose first line is no sentence for people."""
    every = list(errors)
    owners = Counter(error.code for error in every)
    for error in every:
        if "code" not in vars(error):
            yield f"{error.__name__}: no code of its own"
        elif owners[error.code] > 1:
            yield f"{error.__name__}: {error.code} is not its own"
        if not _CODE.fullmatch(error.code):
            yield f"{error.__name__}: {error.code} is not camel case"
        line = (vars(error).get("__doc__") or "").split("\n", 1)[0]
        if not line.endswith("."):
            yield f"{error.__name__}: its first line is no sentence"


def test_every_event_has_one_route() -> None:
    """Every kind of event is read from the log under one type and goes through projectors."""
    _import_all("pi_workflows/domain")
    leaves = list(_events_below(Event))
    assert leaves != [Event]
    assert list(unrouted(leaves, set(EVENTS.values()), set(ROUTE))) == []
    assert [name for name in EVENTS if not _EVENT_TYPE.fullmatch(name)] == []
    assert all(ROUTE.values())


def test_two_kinds_of_event_never_share_a_type() -> None:
    """Each stored type leads to the one class that carries it."""
    assert [name for name, kind in EVENTS.items() if kind.type != name] == []
    assert len(set(EVENTS.values())) == len(EVENTS)


def test_a_missing_route_is_found() -> None:
    """An event that is not read, one that is not projected and a route to nothing are found."""

    class Known:
        """A kind that is read and projected."""

    class Lost:
        """A kind that is neither."""

    assert list(unrouted([Known], {Known}, {Known})) == []
    assert len(list(unrouted([Known, Lost], {Known}, {Known}))) == 2
    assert len(list(unrouted([Known], {Known}, set()))) == 1
    assert len(list(unrouted([Known], {Known}, {Known, Lost}))) == 1


def test_every_error_says_what_it_is() -> None:
    """Every error has a code of its own and a first line that people can read."""
    _import_all("pi_workflows/base")
    every: list[type[WorkflowsError]] = [WorkflowsError, *_errors_below(WorkflowsError)]
    assert len(every) > 1
    assert list(undocumented(every)) == []


def test_an_undocumented_error_is_found() -> None:
    """A code that is missing, shared or badly spelt is found, and so is a missing sentence."""

    class First(WorkflowsError):
        """The first."""

        code = "planted"

    class Second(WorkflowsError):
        """The second."""

        code = "planted"

    class Silent(WorkflowsError):
        code = "silent"

    class Spelt(WorkflowsError):
        """The fourth."""

        code = "badly_spelt"

    class Heir(First):
        """The fifth."""

    twins: tuple[type[WorkflowsError], ...] = (First, Second)
    assert [found.split(":")[0] for found in undocumented(twins)] == ["First", "Second"]
    wrong: tuple[type[WorkflowsError], ...] = (Silent, Spelt, Heir)
    for kind in wrong:
        assert len(list(undocumented([kind]))) == 1
    assert list(undocumented([First])) == []


def test_every_limit_bounds_something() -> None:
    """No limit of the product is only written down."""
    names = [name for name in vars(limits) if name.isupper() and not name.startswith("_")]
    assert names
    own = "pi_workflows/base/limits.py"
    texts = [each.text for each in modules() if each.is_product and each.path != own]
    assert list(unused_limits(names, texts)) == []


def test_an_unused_limit_is_found() -> None:
    """A limit that no module names is found, even where its name is part of another."""
    text = "if count > A_MAX_B:\n"
    assert list(unused_limits(["A_MAX"], [text])) == ["A_MAX bounds nothing"]
    assert list(unused_limits(["A_MAX_B"], [text])) == []
