"""The state directory: whose it is, who may write it, and what kind of disk it lies on."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from pi_workflows.base.errors import AuthorityDenied, PayloadInvalid

_PRIVATE: Final = 0o700
_MOUNTS: Final = Path("/proc/self/mountinfo")
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_OWN: Final = "Choose a directory of your own."
# SQLite's locks do not hold there, and another machine may write the same file.
_NETWORK_TYPES: Final = frozenset(
    {
        "afs",
        "ceph",
        "cifs",
        "coda",
        "fuse.glusterfs",
        "fuse.sshfs",
        "gfs2",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb3",
        "smbfs",
    }
)


def secure_directory(directory: Path) -> Path:
    """Make the state directory ours alone, creating it when it is missing.

    A symbolic link to a directory is followed, once: everything is opened below the result
    (decisions "links").

    Args:
        directory: Absolute.

    Returns:
        The directory without symbolic links, mode 0700.

    Raises:
        PayloadInvalid: The path is relative, or names something that is no directory.
        AuthorityDenied: It belongs to another user, others may write it, or it lies on a network
            file system; nothing was changed.
        OSError: It cannot be created or read.
    """
    if not directory.is_absolute():
        raise PayloadInvalid(
            f"The state directory must be an absolute path: {directory}",
            code="notAbsolute",
            field=str(directory),
        )
    try:
        directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise PayloadInvalid(
            f"The state directory is a file, or lies below one: {directory}",
            code="notDirectory",
            field=str(directory),
            hint=_OWN,
        ) from error
    resolved = directory.resolve(strict=True)
    found = resolved.stat()
    if found.st_uid != os.geteuid():
        raise AuthorityDenied(
            f"The state directory belongs to another user: {directory}",
            code="directoryNotOurs",
            field=str(directory),
            hint=_OWN,
        )
    if found.st_mode & _OTHERS_WRITE:
        raise AuthorityDenied(
            f"Others may write the state directory: {directory}",
            code="directoryNotPrivate",
            field=str(directory),
            # Where everybody may put files, as in /tmp, closing it would harm the others.
            hint=_OWN if found.st_mode & stat.S_ISVTX else f"chmod 700 {directory}",
        )
    kind = _file_system_type(found.st_dev)
    if kind in _NETWORK_TYPES:
        raise AuthorityDenied(
            f"The state directory lies on a network file system ({kind}): {directory}",
            code="networkFileSystem",
            field=str(directory),
            hint="Set PI_WORKFLOWS_STATE_DIR to a local directory.",
        )
    if stat.S_IMODE(found.st_mode) != _PRIVATE:
        resolved.chmod(_PRIVATE)
    return resolved


def _file_system_type(device: int) -> str | None:
    """Return the type of a device's file system; None when the kernel does not say."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in mounts.splitlines():
        # 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
        place, _, kind = line.partition(" - ")
        fields = place.split()
        if len(fields) > 2 and fields[2] == number:  # noqa: PLR2004 - the third field
            return kind.split()[0] if kind else None
    return None
