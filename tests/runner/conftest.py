"""Runners to talk to, and workflow files for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.runner.peer import Peer

_HEAD = """
import os, signal, subprocess, sys, threading, time
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal
import trio
from pydantic import BaseModel
from pi_workflows import *

class Input(BaseModel):
    n: int = 3

class Empty(BaseModel):
    pass
"""


@pytest.fixture
def author(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a workflow file: the text after the usual imports and a model `Input` with `n`."""
    count = 0

    def write(text: str) -> Path:
        nonlocal count
        count += 1
        folder = tmp_path / f"project{count}"
        folder.mkdir()
        path = folder / "sample_workflow.py"
        path.write_text(_HEAD + text)
        return path

    return write


@pytest.fixture
def start(tmp_path: Path, worker_id: str) -> Iterator[Callable[[], Peer]]:
    """Starts runners. No process of theirs may be left at the end of a test."""
    peers: list[Peer] = []

    def begin() -> Peer:
        number = len(peers)
        cookie = f"{worker_id}-{tmp_path}-{number}"
        peer = Peer.start(tmp_path / f"output{number}.txt", cookie)
        peers.append(peer)
        return peer

    yield begin
    left = [pid for peer in peers for pid in peer.close()]
    assert not left, [peer.printed() for peer in peers]
