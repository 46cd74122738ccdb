"""What a validator is asked: the code of the workflow that asked judges what was answered."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.sql import Read
from pi_workflows.server import sources
from pi_workflows.server.launch_options import LaunchOptions
from pi_workflows.server.resolver import Resolver
from pi_workflows.views.launch import launch_facts
from pi_workflows.views.request import RequestRow


@dataclass(frozen=True, slots=True)
class Judgement:
    """One question to a validator.

    Attributes:
        request: Its request line (the runner protocol, "Program").
        options: The run's launch options: the files that are verified, the client's variables.
    """

    request: dict[str, Json]
    options: LaunchOptions

    async def value(self, resolver: Resolver) -> Json:
        """Return what the workflow's own code makes of the candidate.

        Args:
            resolver: Starts the supervised child.

        Returns:
            The value as it is stored.

        Raises:
            PayloadInvalid: `answerInvalid`: it is not acceptable; the message says why.
            TransitionDenied: `workflowSourceChanged`: the code that would judge is another one.
            Refused: The code could not judge it.
            Unavailable: The server is stopping.
        """
        await sources.require_unchanged(self.options.source_files)
        return await resolver.validate(self.request, self.options.environment)


def judgement(read: Read, question: RequestRow, candidate: Json) -> Judgement:
    """Return what a validator is asked about a candidate.

    Args:
        read: One consistent read.
        question: The question, with its contract.
        candidate: What was answered.

    Returns:
        The question to the validator.

    Raises:
        NotFound: There is no such run.
    """
    contract = question.contract
    assert contract is not None, "a question without its contract"
    return _judgement(
        read,
        question.run_id,
        {
            "nodePath": question.node_path,
            "kind": question.kind,
            "contract": canonical.fragment(contract.load(read)),
            "candidate": candidate,
        },
    )


def settings_judgement(
    read: Read, run_id: str, mount_path: str, contract: Json, candidate: Json
) -> Judgement:
    """Return what a validator is asked about changed settings.

    Args:
        read: One consistent read.
        run_id: The run.
        mount_path: The workflow whose settings they are; empty for the root.
        contract: Who asks (`actor`), and the settings as they stand (`before`).
        candidate: What they would be.

    Raises:
        NotFound: There is no such run.
    """
    asked: dict[str, Json] = {
        "nodePath": mount_path,
        "kind": "settings",
        "contract": contract,
        "candidate": candidate,
    }
    return _judgement(read, run_id, asked)


def _judgement(read: Read, run_id: str, asked: dict[str, Json]) -> Judgement:
    """Return a question about a run's workflow, with the files that make it up."""
    facts = launch_facts(read, run_id)
    options = read.document(LaunchOptions.parse, facts.launch_options_hash)
    request: dict[str, Json] = {
        "projectPath": facts.project_path,
        "sourceFiles": [
            file.model_dump(mode="json", by_alias=True) for file in options.source_files
        ],
        "mounts": [mount.document() for mount in facts.mounts],
        "definitionDigest": facts.definition_digest,
        **asked,
    }
    return Judgement(request, options)
