"""One server a state directory, and only its own leftovers are removed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pi_workflows.base.errors import Refused, TransitionDenied
from pi_workflows.server import lock
from pi_workflows.server.lock import ProcessLock


def test_the_second_server_is_refused(tmp_path: Path) -> None:
    """While one holds the lock nobody else gets it; afterwards the next one does."""
    file = tmp_path / "host.lock"
    first = ProcessLock.take(file)
    assert lock.is_held(file)
    with pytest.raises(TransitionDenied) as caught:
        ProcessLock.take(file)
    assert caught.value.reason_code == "serverRunning"
    first.close()
    assert not lock.is_held(file)
    ProcessLock.take(file).close()


def test_the_lock_names_its_holder(tmp_path: Path) -> None:
    """Whoever is refused can say which process is the server, which a free lock does not."""
    file = tmp_path / "host.lock"
    assert lock.holder(file) is None
    held = ProcessLock.take(file)
    assert lock.holder(file) == os.getpid()
    held.close()
    assert lock.holder(file) is None


def test_asking_makes_no_file(tmp_path: Path) -> None:
    """A look at a lock that was never taken leaves nothing behind."""
    file = tmp_path / "host.lock"
    assert not lock.is_held(file)
    assert not file.exists()


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    """A link in the lock's place is refused, and what it names is not made."""
    file = tmp_path / "host.lock"
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused) as caught:
        ProcessLock.take(file)
    assert caught.value.reason_code == "lockInvalid"
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_file_has_mode_0600(tmp_path: Path) -> None:
    """Nobody else may open the lock, and so hold it against us."""
    held = ProcessLock.take(tmp_path / "host.lock")
    assert (tmp_path / "host.lock").stat().st_mode & 0o777 == 0o600
    held.close()


def test_pitfall_17_a_stale_socket_is_removed(tmp_path: Path) -> None:
    """A socket that refuses connections was left behind, and goes; none at all is fine."""
    path = tmp_path / "host.sock"
    lock.remove_stale_socket(path)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
    lock.remove_stale_socket(path)
    assert not path.exists()


@pytest.mark.parametrize("kind", ["listening", "file", "link"])
def test_pitfall_17_anything_else_stays(tmp_path: Path, kind: str) -> None:
    """Something that listens, or that is no socket, is left where it is."""
    path = tmp_path / "host.sock"
    with socket.socket(socket.AF_UNIX) as bound:
        if kind == "listening":
            bound.bind(str(path))
            bound.listen()
        elif kind == "file":
            path.write_text("precious")
        else:
            path.symlink_to(tmp_path / "dangling")
        with pytest.raises(Refused) as caught:
            lock.remove_stale_socket(path)
    assert caught.value.reason_code == "socketPathTaken"
    assert path.is_symlink() or path.exists()
