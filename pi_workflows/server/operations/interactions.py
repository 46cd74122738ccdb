"""What a Pi session answers to its runs' steps, and the progress that it publishes."""

from __future__ import annotations

from dataclasses import replace

from pydantic import ValidationError

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    LimitExceeded,
    Outcome,
    PayloadInvalid,
    Refused,
    Unavailable,
)
from pi_workflows.base.limits import (
    ANSWER_BYTES_MAX,
    UPDATE_DATA_BYTES_MAX,
    UPDATES_BURST_MAX,
    UPDATES_PER_SECOND_MAX,
)
from pi_workflows.base.rate import Rate
from pi_workflows.definition.progress import Progress
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.request.state import submission
from pi_workflows.domain.request.submission import JudgeSubmission, SubmitCandidate, SubmitText
from pi_workflows.domain.request.update import PublishUpdate
from pi_workflows.kernel.order import Order
from pi_workflows.protocol.interactions import (
    InteractionAssistant,
    InteractionSubmit,
    InteractionUpdate,
)
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.wire import error_line
from pi_workflows.server.operations.call import Call, replied
from pi_workflows.server.operations.own_run import session_of
from pi_workflows.server.services import Services
from pi_workflows.server.validation import Judgement, judgement
from pi_workflows.views.request import request_row
from pi_workflows.views.turns import Judged, judged

_PROGRESS = "progress"


async def submit(services: Services, call: Call) -> Reply:
    """Take what a model made of its step; the reply says what the workflow's own code made of it.

    A candidate is kept before it is judged: a lost connection or server loses none of it, and a
    request that is repeated waits for the same judgement.

    Args:
        services: The server.
        call: `interaction.submit`; its expected revision is the request's.

    Returns:
        The receipt: `accepted`, `adopted`, or `rejected` with `receipt.error`.

    Raises:
        LimitExceeded: `valueTooLarge`.
        Unavailable: As `Writer.submit`; a candidate that was kept is judged at the next start.
    """
    payload = call.read(InteractionSubmit)
    value = _sized("value", payload.value)
    command = SubmitCandidate(
        run_id=call.run_id,
        request_id=payload.request_id,
        request_revision=call.request.expected_revision,
        submission_id=payload.submission_id,
        idempotency_key=call.request.idempotency_key,
        session_id=session_of(call),
        value=value,
    )
    answer = await services.writer.submit(_unremembered(call, command, len(value.content)))
    if answer.outcome not in (Outcome.ACCEPTED, Outcome.ADOPTED):
        return replied(answer)
    kept = Judged(call.run_id, payload.request_id, payload.submission_id)
    return await judge(services, kept)


async def judge(services: Services, kept: Judged) -> Reply:
    """Have a candidate judged and store the judgement, once, whether or not the caller stays.

    Args:
        services: The server.
        kept: The candidate.

    Returns:
        What became of it.

    Raises:
        Unavailable: The server is stopping; it stays to be judged.
    """

    async def once() -> Reply:
        return await _judge(services, kept)

    return await services.long_work.perform((kept.request_id, kept.submission_id), once)


async def judge_left(services: Services) -> None:
    """Have every candidate judged that an earlier server had taken."""
    with services.store.snapshot() as read:
        left = judged(read)
    for kept in left:
        try:
            await judge(services, kept)
        except (Refused, Unavailable) as error:
            services.log.limited("submission.unjudged", run=kept.run_id, code=error.reason_code)


async def _judge(services: Services, kept: Judged) -> Reply:
    """Judge a candidate that is not judged yet, and store what came of it."""
    value: Blob | None = None
    error: str | None = None
    question = _question(services, kept)
    if question is not None:
        try:
            value = _sized("value", await question.value(services.resolver))
        except Refused as refusal:
            # A validator that crashed refuses the candidate too; the request stays open.
            error = error_line(refusal.message)
    command = JudgeSubmission(
        run_id=kept.run_id,
        request_id=kept.request_id,
        submission_id=kept.submission_id,
        value=value,
        error=error,
        elapsed_ms=services.turns.elapsed_ms(kept.run_id),
    )
    order = Order(
        name="interaction.judge",
        commands=(command,),
        actor=Actor("host", services.host_id),
        command_id=ids.random_id("command"),
        run_id=kept.run_id,
        size_bytes=len(value.content) if value is not None else 0,
    )
    return replied(await services.writer.submit(order))


def _question(services: Services, kept: Judged) -> Judgement | None:
    """Return what a validator is asked; None when the candidate was judged already."""
    with services.store.snapshot() as read:
        candidate = submission(read, kept.submission_id)
        if candidate is None or candidate.outcome != "validating":
            return None
        document = read.blob(candidate.payload_hash)
        return judgement(read, request_row(read, kept.request_id), canonical.decode(document))


async def assistant(services: Services, call: Call) -> Reply:
    """Take the text of a turn as the output of its step.

    Args:
        services: The server.
        call: `interaction.assistant`; its expected revision is the request's.

    Returns:
        The receipt: `accepted`, `adopted`, or `rejected` with `receipt.error`.

    Raises:
        LimitExceeded: `valueTooLarge`.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(InteractionAssistant)
    text = payload.value.text
    size = len(_sized("value", text).content)
    command = SubmitText(
        run_id=call.run_id,
        request_id=payload.request_id,
        request_revision=call.request.expected_revision,
        submission_id=payload.submission_id,
        idempotency_key=call.request.idempotency_key,
        session_id=session_of(call),
        text=text,
        entry_id=payload.value.session_entry_id,
        elapsed_ms=services.turns.elapsed_ms(call.run_id),
    )
    return replied(await services.writer.submit(_unremembered(call, command, size)))


async def update(services: Services, call: Call) -> Reply:
    """Record the progress of a step that a session's model works on.

    Args:
        services: The server.
        call: `interaction.update`; its expected revision is the request's.

    Returns:
        The record of the update, or the domain's refusal.

    Raises:
        PayloadInvalid: A `progress` account that is none.
        LimitExceeded: `updateTooLarge` or `updateRate`.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(InteractionUpdate)
    session_id, given = session_of(call), payload.value.update
    if given.type == _PROGRESS:
        _require_progress(given.data)
    data = Blob.json(given.data)
    if len(data.content) > UPDATE_DATA_BYTES_MAX:
        raise LimitExceeded(
            f"data: {len(data.content):,} bytes are more than {UPDATE_DATA_BYTES_MAX:,}",
            code="updateTooLarge",
            field="value.update.data",
        )
    _require_rate(services, session_id)
    command = PublishUpdate(
        run_id=call.run_id,
        request_id=payload.request_id,
        request_revision=call.request.expected_revision,
        session_id=session_id,
        update_type=given.type,
        update_key=given.key,
        data=data,
    )
    return replied(await services.writer.submit(call.order(command, size_bytes=len(data.content))))


def _require_progress(data: Json) -> None:
    """Refuse progress that is not of its form. Raises PayloadInvalid `progressInvalid`."""
    try:
        Progress.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(("value.update.data", *map(str, first["loc"])))
        raise PayloadInvalid(
            f"{where}: {first['msg']}", code="progressInvalid", field=where
        ) from None


def _require_rate(services: Services, session_id: str) -> None:
    """Refuse a session that publishes too fast. Raises LimitExceeded `updateRate`."""
    coordinator = services.coordinators.of(session_id)
    if coordinator is None:
        return
    if coordinator.rate is None:
        coordinator.rate = Rate(
            services.clock, per_second=UPDATES_PER_SECOND_MAX, burst=UPDATES_BURST_MAX
        )
    if not coordinator.rate.take():
        raise LimitExceeded(
            f"More than {UPDATES_PER_SECOND_MAX} updates a second, after a burst of"
            f" {UPDATES_BURST_MAX}.",
            code="updateRate",
            hint="Publish what has changed, less often.",
        )


def _unremembered(call: Call, command: Command, size_bytes: int) -> Order:
    """Return an order whose repeats are found by its own submission, not by a receipt."""
    return replace(call.order(command, size_bytes=size_bytes), identity=None)


def _sized(field: str, value: Json) -> Blob:
    """Return a value as it is stored. Raises LimitExceeded when it is too large."""
    blob = Blob.json(value)
    if len(blob.content) > ANSWER_BYTES_MAX:
        raise LimitExceeded(
            f"{field}: {len(blob.content):,} bytes are more than {ANSWER_BYTES_MAX:,}",
            code="valueTooLarge",
            field=field,
            hint="Put large data into a file and answer with its path.",
        )
    return blob
