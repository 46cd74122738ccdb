"""The state directory is ours alone, on a disk of this machine."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from pi_workflows.base.errors import AuthorityDenied, PayloadInvalid
from pi_workflows.store import directory as module
from pi_workflows.store.directory import secure_directory

if TYPE_CHECKING:
    from pathlib import Path


def mode(path: Path) -> int:
    """Return a path's permission bits."""
    return path.stat().st_mode & 0o7777


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    """A directory that is missing is created with its parents, mode 0700 under any umask."""
    for mask in (0, 0o077, 0o177):
        target = tmp_path / str(mask) / "state"
        old = os.umask(mask)
        try:
            if mask == 0o177:
                target.parent.mkdir()
                target.parent.chmod(0o700)
            assert secure_directory(target) == target
        finally:
            os.umask(old)
        assert mode(target) == 0o700


@pytest.mark.parametrize("loose", [0o755, 0o750, 0o711, 0o500])
def test_another_mode_is_tightened(tmp_path: Path, loose: int) -> None:
    """A directory that others may only read is closed to them."""
    target = tmp_path / "state"
    target.mkdir()
    target.chmod(loose)
    secure_directory(target)
    assert mode(target) == 0o700


@pytest.mark.parametrize("loose", [0o770, 0o720, 0o777, 0o702, 0o1777])
def test_a_directory_that_others_may_write_is_refused(tmp_path: Path, loose: int) -> None:
    """Where others may write, files may have been swapped: refused, unchanged, with the remedy."""
    target = tmp_path / "state"
    target.mkdir()
    target.chmod(loose)
    with pytest.raises(AuthorityDenied) as caught:
        secure_directory(target)
    assert caught.value.reason_code == "directoryNotPrivate"
    assert caught.value.field == str(target)
    is_shared = bool(loose & stat.S_ISVTX)
    remedy = "Choose a directory of your own." if is_shared else f"chmod 700 {target}"
    assert caught.value.hint == remedy
    assert mode(target) == loose


def test_a_link_is_followed_once(tmp_path: Path) -> None:
    """A link to a directory is resolved; the target is what is judged and returned."""
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("real")
    assert secure_directory(tmp_path / "link") == tmp_path / "real"
    assert mode(tmp_path / "real") == 0o700
    (tmp_path / "real").chmod(0o777)
    with pytest.raises(AuthorityDenied):
        secure_directory(tmp_path / "link")


def test_a_relative_path_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state directory is absolute: it must not depend on where a command was started."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PayloadInvalid) as caught:
        secure_directory(tmp_path.relative_to(tmp_path) / "state")
    assert caught.value.reason_code == "notAbsolute"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_is_no_directory(tmp_path: Path, below: str) -> None:
    """A file in the place of the directory, or of its parent, is refused and left alone."""
    (tmp_path / "state").write_text("mine")
    with pytest.raises(PayloadInvalid) as caught:
        secure_directory(tmp_path / "state" / below)
    assert caught.value.reason_code == "notDirectory"
    assert (tmp_path / "state").read_text() == "mine"


def test_a_dangling_link_is_no_directory(tmp_path: Path) -> None:
    """A link that leads nowhere is not filled with a directory."""
    (tmp_path / "state").symlink_to("nowhere")
    with pytest.raises(PayloadInvalid):
        secure_directory(tmp_path / "state")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_the_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """A directory that belongs to somebody else is refused."""
    target = tmp_path / "state"
    target.mkdir(mode=0o700)
    os.chown(target, 12345, -1)
    with pytest.raises(AuthorityDenied) as caught:
        secure_directory(target)
    assert caught.value.reason_code == "directoryNotOurs"


MOUNTS = """\
22 1 {root} / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 {device} / {place} rw,relatime shared:9 master:3 - {kind} server:/export rw,vers=4.2
"""


@pytest.mark.parametrize(
    ("kind", "refused"), [("nfs4", True), ("cifs", True), ("fuse.sshfs", True), ("xfs", False)]
)
def test_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, refused: bool
) -> None:
    """Locks do not hold there: a directory on a network file system is refused by its type."""
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts.write_text(MOUNTS.format(root="7:7", device=number, place=tmp_path, kind=kind))
    monkeypatch.setattr(module, "_MOUNTS", mounts)
    if not refused:
        secure_directory(tmp_path / "state")
        return
    with pytest.raises(AuthorityDenied, match=kind) as caught:
        secure_directory(tmp_path / "state")
    assert caught.value.reason_code == "networkFileSystem"


def test_without_mounts_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel does not list its mounts the directory is accepted."""
    monkeypatch.setattr(module, "_MOUNTS", tmp_path / "missing")
    secure_directory(tmp_path / "state")
