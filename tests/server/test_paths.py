"""The state directory is ours alone, or the server does not touch it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_workflows.base.errors import AuthorityDenied, LimitExceeded, PayloadInvalid, Refused
from pi_workflows.server.paths import locate, prepare


def test_the_variable_names_the_directory() -> None:
    """PI_WORKFLOWS_STATE_DIR is the state directory, else one in the home directory."""
    assert locate({"PI_WORKFLOWS_STATE_DIR": "/a/b/../c"}) == Path("/a/c")
    assert locate({"HOME": "/home/me"}) == Path("/home/me/.pi/agent/workflows")
    assert locate({"HOME": "/home/me", "PI_WORKFLOWS_STATE_DIR": ""}).parts[1] == "home"


def test_a_relative_directory_is_refused() -> None:
    """A relative path would mean another directory in every process."""
    with pytest.raises(PayloadInvalid) as caught:
        locate({"PI_WORKFLOWS_STATE_DIR": "state"})
    assert caught.value.reason_code == "stateDirRelative"
    assert caught.value.field == "PI_WORKFLOWS_STATE_DIR"


def test_every_directory_is_private(state_dir: Path) -> None:
    """What is created has mode 0700, also under an open umask, and a looser mode is tightened."""
    mask = os.umask(0)
    try:
        state = prepare(state_dir)
    finally:
        os.umask(mask)
    made = (state.root, state.host, state.children, state.log.parent)
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
    state.host.chmod(0o755)
    prepare(state_dir)
    assert state.host.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("place", [".", "host", "host/children"])
def test_pitfall_20_a_directory_that_others_may_write_is_refused(
    state_dir: Path, place: str
) -> None:
    """A directory in which others can replace our files is refused, with its mode untouched."""
    prepare(state_dir)
    shared = state_dir / place
    shared.chmod(0o770)
    with pytest.raises(AuthorityDenied) as caught:
        prepare(state_dir)
    assert caught.value.reason_code == "directoryNotPrivate"
    assert shared.stat().st_mode & 0o777 == 0o770


def test_pitfall_16_a_socket_path_that_is_too_long_is_refused_at_once(tmp_path: Path) -> None:
    """A socket path over 107 bytes is refused by its length, and nothing is made for the server."""
    deep = tmp_path / ("d" * 107)
    with pytest.raises(LimitExceeded) as caught:
        prepare(deep)
    assert caught.value.reason_code == "socketPathTooLong"
    assert not (deep / "host").exists()


def test_pitfall_11_a_link_to_the_directory_is_resolved_once(state_dir: Path) -> None:
    """Everything lies below the directory that the link named when the server began."""
    real = state_dir.parent / "real"
    real.mkdir()
    state_dir.symlink_to(real)
    assert prepare(state_dir).root == real.resolve()


@pytest.mark.parametrize("kind", ["file", "loop", "inner link"])
def test_something_else_than_a_directory_is_refused(state_dir: Path, kind: str) -> None:
    """A file, a loop of links or a link in the place of `host` is refused with one line."""
    if kind == "file":
        state_dir.write_text("x")
    elif kind == "loop":
        state_dir.symlink_to(state_dir)
    else:
        state_dir.mkdir()
        (state_dir / "host").symlink_to(state_dir.parent)
    with pytest.raises(Refused) as caught:
        prepare(state_dir)
    assert len(caught.value.message.splitlines()) == 1
