"""The constructor of decisions that only a person, or the declared policy, takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias, cast, overload

from pydantic import ValidationError

from pi_workflows.authoring.context import Context
from pi_workflows.authoring.declared import common_problems, function_problems
from pi_workflows.authoring.nodes import HumanDecisionNode
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.authoring.policies import TIMEOUT_DEFAULT, TimeLimit
from pi_workflows.base.errors import Problem
from pi_workflows.base.limits import (
    DECISION_INPUT_CHARS_DEFAULT,
    DECISION_INPUT_CHARS_MIN,
)
from pi_workflows.definition.decision import (
    Choice,
    DecisionPolicy,
    Presentation,
    Response,
    TextInput,
)
from pi_workflows.definition.presentation import PresentationBuilder

_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """What a person is asked this time; a `human_decision` builds it once per visit.

    Attributes:
        title: What is decided, in one line.
        subject: What it is decided about, as JSON or a model. An approval holds for exactly this
            value; people see the presentation, never the subject.
        presentation: What the person is shown: `present(...)`, or the JSON of a presentation.
    """

    title: str
    subject: object
    presentation: Presentation | PresentationBuilder | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Timeout:
    """What becomes of a decision that nobody takes in time.

    Attributes:
        after: Wall time from the question on; pauses and downtime count.
        response: What is then decided, such as `{"choice": "stop"}`.
    """

    after: timedelta
    response: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HumanChoice:
    """What `choice` returns: a choice without its ID."""

    label: str
    input: TextInput | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class HumanChoices:
    """What `human_choices` returns: the choices of a decision, in reading order."""

    choices: tuple[Choice, ...]
    problems: tuple[Problem, ...] = ()


RequestFunction: TypeAlias = Callable[[Context[Any]], DecisionRequest | Awaitable[DecisionRequest]]


def text_input(
    name: str,
    *,
    prompt: str,
    chars_min: int = DECISION_INPUT_CHARS_MIN,
    chars_max: int = DECISION_INPUT_CHARS_DEFAULT,
) -> TextInput:
    """Describe the text that a person types to a choice.

    Args:
        name: What it is called in the response's `input`.
        prompt: What is asked for.
        chars_min: Characters at least.
        chars_max: Characters at most, no more than 16,000.

    Returns:
        The description, for `choice(input=...)`.
    """
    return TextInput.model_construct(
        name=name, prompt=prompt, chars_min=chars_min, chars_max=chars_max
    )


def choice(label: str, *, input: TextInput | None = None) -> HumanChoice:  # noqa: A002 - its name
    """Describe one way to decide.

    Args:
        label: What a person reads.
        input: The text that goes with it; at most one choice of a decision has one.

    Returns:
        The choice, for `human_choices`.
    """
    return HumanChoice(label, input, tuple(_choice_problems(label, input)))


def human_choices(**choices: HumanChoice) -> HumanChoices:
    """Collect the choices of a decision.

    Args:
        choices: The choices by ID. One underscore at the end of a name is left out, so that
            `continue_` is the choice `continue`.

    Returns:
        The choices, for `human_decision(choices=...)`.
    """
    known: list[Choice] = []
    problems: list[Problem] = []
    for name, given in cast("dict[str, object]", choices).items():
        if not isinstance(given, HumanChoice):
            problems.append(
                Problem("choicesInvalid", "", f"{name} is {given!r:.60}: use choice(...)")
            )
            continue
        problems.extend(given.problems)
        if not given.problems:
            known.append(Choice(id=name.removesuffix("_"), label=given.label, input=given.input))
    return HumanChoices(tuple(known), tuple(problems))


@overload
def human_decision(
    *,
    audience: str,
    choices: HumanChoices,
    request: RequestFunction,
    on_timeout: Timeout | None = None,
    expires: timedelta | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    status_detail: str | None = None,
) -> HumanDecisionNode[Response]: ...
@overload
def human_decision(
    *,
    audience: str,
    choices: HumanChoices,
    on_timeout: Timeout | None = None,
    expires: timedelta | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    status_detail: str | None = None,
) -> Callable[[RequestFunction], HumanDecisionNode[Response]]: ...
def human_decision(
    *,
    audience: str,
    choices: HumanChoices,
    request: RequestFunction | None = None,
    on_timeout: Timeout | None = None,
    expires: timedelta | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    status_detail: str | None = None,
) -> object:
    """Make a node that only a proved person answers; without a request, a decorator.

    Args:
        audience: Who is asked, such as `operator`.
        choices: The ways to decide.
        request: Builds what is asked, once per visit, from the context.
        on_timeout: What is decided when nobody does, and after how long.
        expires: After how long the decision is cancelled instead, which fails the node.
        timeout: Active time of `request`; waiting for the person costs none.
        status_detail: What people read while it runs, at most 200 characters.

    Returns:
        The node, for `define_workflow(nodes=...)`; its output is the response, `{choice, input?}`,
        and `human_decision_edge` leads on from it.
    """

    def build(target: RequestFunction) -> HumanDecisionNode[Response]:
        return HumanDecisionNode(
            function=target,
            policy=_policy(audience, choices, on_timeout, expires),
            output=OutputModel.of(Response),
            timeout=timeout,
            status_detail=status_detail,
            problems=(
                *function_problems(target, "request"),
                *_policy_problems(audience, choices, on_timeout, expires),
                *common_problems(timeout, None, status_detail),
            ),
        )

    return build if request is None else build(request)


def _policy(
    audience: object, choices: object, on_timeout: object, expires: object
) -> DecisionPolicy:
    """Return the snapshot's form of a declared decision; what is wrong with it is left out."""
    response: Response | None = None
    after: object = None
    if isinstance(on_timeout, Timeout):
        after, response = on_timeout.after, _response(on_timeout.response)
    return DecisionPolicy(
        audience=audience if isinstance(audience, str) else "",
        choices=choices.choices if isinstance(choices, HumanChoices) else (),
        timeout_ms=_milliseconds(after),
        default_response=response,
        expires_ms=_milliseconds(expires),
    )


def _milliseconds(time: object) -> int | None:
    return -(-time // _MILLISECOND) if isinstance(time, timedelta) else None


def _response(response: object) -> Response | None:
    """Return a declared response, or None when it has not the form of one."""
    try:
        return Response.model_validate(response)
    except ValidationError:
        return None


def _choice_problems(label: object, asked: object) -> Iterator[Problem]:
    if not isinstance(label, str):
        yield Problem("choicesInvalid", "", f"label {label!r:.60}: use text")
    if asked is None:
        return
    if not isinstance(asked, TextInput):
        yield Problem("choicesInvalid", "", f"input is {asked!r:.60}: use text_input(...)")
        return
    texts = (cast("object", asked.name), cast("object", asked.prompt))
    bounds = (cast("object", asked.chars_min), cast("object", asked.chars_max))
    if not all(isinstance(text, str) for text in texts):
        yield Problem("choicesInvalid", "", "text_input: its name and prompt are texts")
    if not all(type(bound) is int for bound in bounds):
        yield Problem("choicesInvalid", "", "text_input: its bounds are whole numbers")


def _policy_problems(
    audience: object, choices: object, on_timeout: object, expires: object
) -> Iterator[Problem]:
    if not isinstance(audience, str):
        yield Problem("audienceInvalid", "", f"audience is {audience!r:.60}: use text")
    if isinstance(choices, HumanChoices):
        yield from choices.problems
    else:
        yield Problem("choicesInvalid", "", f"choices is {choices!r:.60}: use human_choices(...)")
    if isinstance(on_timeout, Timeout):
        if not isinstance(cast("object", on_timeout.after), timedelta):
            yield Problem("onTimeoutInvalid", "", "on_timeout: its time is a timedelta")
        if _response(on_timeout.response) is None:
            yield Problem(
                "onTimeoutInvalid",
                "",
                f"on_timeout: {on_timeout.response!r:.60} is no response: use"
                " {'choice': 'stop'}, with 'input' where the choice has one",
            )
    elif on_timeout is not None:
        yield Problem("onTimeoutInvalid", "", f"on_timeout is {on_timeout!r:.60}: use Timeout(...)")
    if expires is not None and not isinstance(expires, timedelta):
        yield Problem("expiresInvalid", "", f"expires is {expires!r:.60}: use a timedelta")
