"""The content behind references, in chunks, to those who know run, digest and media type."""

from __future__ import annotations

import base64
import hashlib

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound, PayloadInvalid
from pi_workflows.base.limits import CONTENT_CHUNK_BYTES_MAX, INLINE_BYTES_MAX
from pi_workflows.protocol.views import ContentChunk
from pi_workflows.views.content import content_chunk
from tests.kernel.harness import Harness, begin, definition, end, reserve
from tests.views.reading import at, view

LARGE = "x" * (2 * CONTENT_CHUNK_BYTES_MAX + 10)


def chunk(bench: Harness, path: str, offset: int = 0, run_id: str = "run-1") -> ContentChunk:
    """Return a part of a run's content."""
    with bench.store.snapshot() as read:
        return content_chunk(read, run_id, path, offset)


def path_of(blob: Blob, extension: str = "json") -> str:
    """Return the path of a value's reference."""
    return f"artifacts/sha256/{blob.hex}.{extension}"


def test_a_reference_leads_to_its_content(bench: Harness) -> None:
    """Chunk by chunk the client gets exactly the bytes that digest and length promise."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", LARGE), permit=permit)
    reference = at(view(bench), "state", "outputs", "one", "$artifact")
    content = bytearray()
    sizes: list[int] = []
    while True:
        part = chunk(bench, str(at(reference, "path")), len(content))
        assert part.offset == len(content)
        data = base64.b64decode(part.data)
        sizes.append(len(data))
        content += data
        assert part.next_offset == len(content)
        if part.complete:
            break
    assert sizes == [CONTENT_CHUNK_BYTES_MAX, CONTENT_CHUNK_BYTES_MAX, 12]
    assert len(content) == part.content_bytes == at(reference, "bytes")
    assert hashlib.sha256(content).hexdigest() == part.sha256 == at(reference, "sha256")


def test_every_value_of_a_run_can_be_had(bench: Harness) -> None:
    """Input, definition, outputs, errors and the requests of its effects are its own."""
    node: dict[str, Json] = {
        "type": "action",
        "actionForm": "function",
        "effect": {"type": "deploy", "recovery": "idempotent"},
    }
    workflow = definition({"one": node})
    request: Json = {"target": "y" * INLINE_BYTES_MAX}
    permit = bench.launch(workflow=workflow)
    bench.do(begin("one", node_type="action"), permit=permit)
    bench.do(reserve("one", request=request), permit=permit)
    bench.do(end("one", outcome="failed"), permit=permit)
    failure = Blob.json({"code": "nodeFailed", "message": "it did not work"})
    for blob in (workflow, Blob.json({"task": "check"}), Blob.json(request), failure):
        assert base64.b64decode(chunk(bench, path_of(blob)).data) == blob.content


def test_the_end_of_a_content_is_an_empty_part(bench: Harness) -> None:
    """At the end there is nothing more; behind it the offset is at fault."""
    bench.do(bench.start())
    blob = Blob.json({"task": "check"})
    last = chunk(bench, path_of(blob), len(blob.content))
    assert (last.data, last.complete, last.next_offset) == ("", True, len(blob.content))
    with pytest.raises(PayloadInvalid) as refusal:
        chunk(bench, path_of(blob), len(blob.content) + 1)
    assert refusal.value.field == "offset"


def test_run_digest_and_media_type_must_match(bench: Harness) -> None:
    """Another run's value, an unknown one and one of another media type are all missing."""
    bench.do(bench.start("run-1", run_input="mine"), bench.start("run-2", run_input="theirs"))
    assert chunk(bench, path_of(Blob.json("mine"))).complete
    for run_id, path in (
        ("run-1", path_of(Blob.json("theirs"))),
        ("run-1", path_of(Blob.json("nobody's"))),
        ("run-1", path_of(Blob.json("mine"), "txt")),
        ("ghost", path_of(Blob.json("mine"))),
    ):
        with pytest.raises(NotFound) as refusal:
            chunk(bench, path, run_id=run_id)
        assert refusal.value.reason_code == "contentMissing"
