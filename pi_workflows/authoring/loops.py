"""Control loops: decide, do one limited piece of work, look again. They are ordinary edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pi_workflows.authoring.edges import Way, edge, switch
from pi_workflows.base.errors import Problem


@dataclass(frozen=True, slots=True)
class Branch:
    """What `branch` returns: one way around a loop.

    Attributes:
        target: The node that begins the work.
        returns: The nodes that end it; each leads back.
    """

    target: str
    returns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ControlLoop:
    """What `control_loop` returns.

    Attributes:
        choices: The names of the routes, for the decision.
        edges: The edges of the loop, for `define_workflow(edges=[*loop.edges, ...])`.
    """

    choices: tuple[str, ...]
    edges: tuple[Way, ...]


def branch(target: str, *, returns: Sequence[str]) -> Branch:
    """Describe one way around a control loop.

    Args:
        target: The name of the node that begins the work.
        returns: The names of the nodes that end it; they lead back to the loop's start.

    Returns:
        The branch, for `control_loop(routes=...)`.
    """
    return Branch(target, tuple(returns))


def control_loop(
    *, decide: str, return_to: str, routes: Mapping[str, Branch | str], field: str = "route"
) -> ControlLoop:
    """Make the edges of a loop that decides again after each piece of work.

    Args:
        decide: The name of the node whose output holds the chosen route.
        return_to: The name of the node that every branch leads back to: one that looks at how
            things stand, or `decide` itself.
        routes: What follows each choice: a `branch`, or the name of a node that ends the loop.
        field: The member of the output that holds the choice.

    Returns:
        The choices and the edges. The edges inside the branches, and from `return_to` to `decide`,
        are the author's.
    """
    branches = {name: route for name, route in routes.items() if isinstance(route, Branch)}
    cases = {
        name: route.target if isinstance(route, Branch) else route for name, route in routes.items()
    }
    chooses = switch(decide, on=f"$.{field}", cases=cases)
    chooses = replace(chooses, problems=(*chooses.problems, *_problems(decide, branches)))
    # A return point that two branches name leads back once; the problem names it.
    backs = dict.fromkeys(name for route in branches.values() for name in route.returns)
    return ControlLoop(
        choices=tuple(routes),
        edges=(chooses, *(edge(name, return_to) for name in backs if name != decide)),
    )


def _problems(decide: str, branches: Mapping[str, Branch]) -> Iterator[Problem]:
    where = f"edges.{decide}"
    owner: dict[str, str] = {}
    for name, route in branches.items():
        if not route.returns:
            yield Problem(
                "loopReturnMissing",
                where,
                f"route {name!r} never comes back: name what it returns from, or lead to a node"
                " that ends the loop",
            )
        for point in route.returns:
            if point == decide:
                yield Problem(
                    "loopReturnInvalid",
                    where,
                    f"route {name!r}: {decide!r} decides, it returns nothing",
                )
            elif point in owner:
                yield Problem(
                    "loopReturnTwice",
                    where,
                    f"routes {owner[point]!r} and {name!r} both return from {point!r}",
                )
            owner.setdefault(point, name)
