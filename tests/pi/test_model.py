"""The scripted model and the eyes on a session file notice what a test did not plan."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.pi.model import Call, Hold, Model, Record, Says
from tests.pi.session_file import SessionFile


@pytest.fixture
def model() -> Iterator[Model]:
    """Give a model that may have problems."""
    made = Model()
    made.open()
    yield made
    made.close()


def post(model: Model, path: str = "/v1/chat/completions") -> tuple[int, str]:
    """Send a request as Pi does, and return the status and the text of the answer."""
    body: Record = {"model": "scripted", "messages": [{"role": "user", "content": "hello"}]}
    connection = HTTPConnection("127.0.0.1", model.port)
    with closing(connection):
        connection.request("POST", path, json.dumps(body), {"x-session-id": "session-1"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_an_answer_is_streamed(model: Model) -> None:
    """Words and calls come in pieces that make up what was planned, and the last piece says why."""
    model.plan(Says("one two", (Call("probe", {"text": "x"}),)))
    code, text = post(model)
    assert code == 200
    *events, end = text.strip().split("\n\n")
    assert end == "data: [DONE]"
    parts = [json.loads(event.removeprefix("data: ")) for event in events]
    choices = [part["choices"][0] for part in parts if part["choices"]]
    deltas = [choice["delta"] for choice in choices]
    assert "".join(delta.get("content", "") for delta in deltas) == "one two"
    functions = [delta["tool_calls"][0]["function"] for delta in deltas if "tool_calls" in delta]
    assert functions[0]["name"] == "probe"
    arguments = "".join(function["arguments"] for function in functions)
    assert json.loads(arguments) == {"text": "x"}
    assert choices[-1]["finish_reason"] == "tool_calls"
    assert parts[-1]["usage"]["total_tokens"] == 15
    (exchange,) = model.exchanges
    assert (exchange.session_id, exchange.client) == ("session-1", "127.0.0.1")
    assert model.await_exchange(1, "whole") is exchange


def test_what_was_not_planned_is_a_problem(model: Model) -> None:
    """A request too many is refused and remembered, and so is one of another kind."""
    assert post(model)[0] == 400
    assert post(model, "/v1/models")[0] == 404
    assert model.problems == ["request 1 has no answer: hello", "POST /v1/models"]


def test_a_function_answers_after_the_plan(model: Model) -> None:
    """Planned answers come first; then the function is asked, and may look at the request."""
    model.plan(Says("planned"))
    model.respond(lambda exchange: Says(f"number-{exchange.number}"))
    for expected in ("planned", "number-2", "number-3"):
        assert expected in post(model)[1]
    assert model.problems == []


def test_a_held_answer_notices_that_its_client_left(model: Model) -> None:
    """An answer that waits ends as left when nobody waits for it any more."""
    hold = Hold()
    model.plan(Says("one two", hold=hold))
    with socket.create_connection(("127.0.0.1", model.port)) as client:
        body = b'{"messages": []}'
        head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        hold.await_reached()
        assert model.exchanges[0].ending == "open"
    assert model.await_exchange(1, "left").texts == []


def test_a_changed_session_file_is_noticed(tmp_path: Path) -> None:
    """A file may grow, also by half a line; bytes that stood in it may not change."""
    file = SessionFile(tmp_path / "session.jsonl")
    assert file.look() == []
    file.path.write_text('{"type": "session", "version": 3}\n{"id": "a"}\n{"id"', encoding="utf-8")
    assert file.look() == [{"type": "session", "version": 3}, {"id": "a"}]
    with file.path.open("a", encoding="utf-8") as more:
        more.write(': "b"}\n')
    file.assert_is([{"id": "a"}, {"id": "b"}])
    with pytest.raises(AssertionError):
        file.assert_is([{"id": "a"}])
    text = file.path.read_text(encoding="utf-8")
    file.path.write_text(text.replace('"a"', '"c"'), encoding="utf-8")
    with pytest.raises(AssertionError, match="have changed"):
        file.look()
