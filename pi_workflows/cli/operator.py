"""`operator init`: setting the passphrase that proves a person."""

from __future__ import annotations

from pi_workflows.base.errors import Refused, WrongUsage
from pi_workflows.cli.connection import state_directory
from pi_workflows.cli.device import Device, device
from pi_workflows.cli.failure import unsent
from pi_workflows.cli.invocation import Invocation
from pi_workflows.server.operator_key import change_key, create_key, require_key, require_none
from pi_workflows.server.paths import prepare


def init_operator(invocation: Invocation, *, changes: bool) -> int:
    """Set the passphrase, or change it.

    Args:
        invocation: The invocation.
        changes: Whether there is one already, which is asked for first.

    Returns:
        The exit code.

    Raises:
        TransitionDenied: `operatorExists`.
        AuthorityDenied: `operatorMissing`: there is no terminal, or nothing to change; or the old
            passphrase is wrong.
        LimitExceeded: `passphraseLength`.
        WrongUsage: `passphraseMismatch`: the two differ.
        Refused: The directory or the file is refused.
    """
    try:
        file = prepare(state_directory().root).operator
    except Refused as error:
        raise unsent(error) from None
    with device() as asked:
        if changes:
            require_key(file)
            key = change_key(file, asked.secret("Passphrase of the operator"), _new(asked))
        else:
            # Whoever has one need not think of another.
            require_none(file)
            key = create_key(file, _new(asked))
    if invocation.is_json:
        invocation.output.document(
            {"schema": "pi-workflows.cli-operator.v1", "keyId": key.key_id, "file": str(file)}
        )
        return 0
    invocation.output.line(f"The operator's key is {key.key_id}.")
    invocation.output.note(
        "It stands beside each decision that the passphrase proves: remember it. Who replaces"
        f" {file} gets another one."
    )
    return 0


def _new(asked: Device) -> str:
    """Ask for a new passphrase, twice."""
    first = asked.secret("New passphrase")
    if asked.secret("The same again") != first:
        raise WrongUsage("The two passphrases differ.", code="passphraseMismatch")
    return first
