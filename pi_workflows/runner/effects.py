"""An action's effect: reserved, begun, and settled before anything else goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_workflows.base.canonical import Json
from pi_workflows.definition.snapshot import EffectPolicy
from pi_workflows.protocol.proposals import EffectReservation, Failure
from pi_workflows.protocol.runner import Result
from pi_workflows.runner.attempts import Attempt
from pi_workflows.runner.contents import Contents
from pi_workflows.runner.ending import EXIT_DONE, Ending
from pi_workflows.runner.proposals import Proposals

SettledAs: TypeAlias = Literal["applied", "rejected", "uncertain"]


@dataclass(frozen=True, slots=True)
class Due:
    """The effect may be tried now.

    Attributes:
        effect_id: The effect.
        number: The try's number, from 1.
    """

    effect_id: str
    number: int


@dataclass(frozen=True, slots=True)
class Adopted:
    """An earlier try applied the effect; its callback does not run again.

    Attributes:
        result: The stored result in canonical bytes, or None.
    """

    result: bytes | None


Reserved: TypeAlias = Due | Adopted | Failure


class Effects:
    """The effects of one runner, one at a time.

    Attributes:
        is_manual_open: A manual effect is applying; a pause lets it come to its end.
    """

    def __init__(
        self,
        proposals: Proposals,
        contents: Contents,
        ending: Ending,
    ) -> None:
        """Propose effects.

        Args:
            proposals: Where.
            contents: How large requests and results travel.
            ending: What a pause ends after the effect.
        """
        self.is_manual_open = False
        self._proposals = proposals
        self._contents = contents
        self._ending = ending

    async def reserve(self, attempt: Attempt, policy: EffectPolicy, request: bytes) -> Reserved:
        """Give the visit's effect its identity, or learn what became of it.

        Args:
            attempt: The attempt.
            policy: The declared effect.
            request: What it is about to do, in canonical bytes; the same for every try of the
                visit.

        Returns:
            Whether to try, the result of an earlier try, or why the node fails.
        """
        reference, _ = self._contents.ref(request)
        result = await self._proposals.reserve(
            {
                "command": "reserveEffect",
                "attemptId": attempt.attempt_id,
                "effectType": policy.type,
                "recovery": policy.recovery,
                "request": reference,
            }
        )
        if result.outcome == "rejected" or not isinstance(result.values, EffectReservation):
            return _refusal(result)
        return await self._standing(result.values, attempt, policy)

    async def begin(self, due: Due, policy: EffectPolicy) -> None:
        """Have a numbered try recorded; when this returns it may have effects."""
        self.is_manual_open = policy.recovery == "manual"
        await self._proposals.conclude(
            (
                {
                    "command": "beginEffect",
                    "effectId": due.effect_id,
                    "attemptNumber": due.number,
                },
            )
        )

    async def settle(
        self,
        due: Due,
        outcome: SettledAs,
        *,
        result: bytes | None = None,
        failure: Failure | None = None,
    ) -> None:
        """Have the end of a try recorded.

        Args:
            due: The try.
            outcome: `uncertain` when it was cut short.
            result: What it gave, if `applied`; what it had given so far, if cut short.
            failure: Why not, otherwise.

        It does not return when the runner ends with it: an uncertain manual effect parks the run,
        and a paused run has only waited for this.
        """
        command: dict[str, Json] = {
            "command": "settleEffect",
            "effectId": due.effect_id,
            "attemptNumber": due.number,
            "outcome": outcome,
        }
        if result is not None:
            command["result"], _ = self._contents.ref(result)
        if failure is not None:
            command["error"] = failure.document()
        is_parking = outcome == "uncertain" and self.is_manual_open
        await self._proposals.conclude((command,), leaves=is_parking)
        self.is_manual_open = False
        if self._ending.is_leaving:
            await self._ending.leave_now(EXIT_DONE)

    async def _standing(
        self, known: EffectReservation, attempt: Attempt, policy: EffectPolicy
    ) -> Reserved:
        """Return what to do about a known effect (the engine contract, section 6)."""
        due = Due(known.effect_id, known.attempt_count + 1)
        is_retry = attempt.step.tries > 0 and policy.recovery == "idempotent"
        match known.status:
            case "applied":
                return Adopted(
                    None if known.result is None else await self._contents.get(known.result)
                )
            case "pending":
                return due
            case "rejected" if is_retry:
                return due
            case status:
                code = f"effect{status.capitalize()}"
                return Failure.of(code, f"the effect of this visit is already {status}")


def _refusal(result: Result) -> Failure:
    """Return why a reservation was refused."""
    return result.detail or Failure.of("effectRefused", "the effect was refused")
