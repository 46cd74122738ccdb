"""The state directory: where it is, what stands in it, and when it is refused.

The state contract, section 7, and the decisions on files and links: the directory belongs to us and
to nobody else, and lies on a disk of this machine. A symbolic link to it is resolved once, at
start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pi_workflows.base.errors import LimitExceeded, PayloadInvalid, Refused
from pi_workflows.base.limits import SOCKET_PATH_BYTES_MAX
from pi_workflows.store.directory import secure_directory

STATE_DIR_VARIABLE: Final = "PI_WORKFLOWS_STATE_DIR"
# Marks every process of a child's tree with the child that it belongs to.
WORKER_VARIABLE: Final = "PI_WORKFLOWS_WORKER"
_DEFAULT: Final = ".pi/agent/workflows"


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The state directory and the places in it; the package's installation touches none of them.

    Attributes:
        root: The directory, without symbolic links.
    """

    root: Path

    @property
    def database(self) -> Path:
        """The one live database file."""
        return self.root / "state.sqlite"

    @property
    def definitions(self) -> Path:
        """The user's own workflows."""
        return self.root / "definitions"

    @property
    def operator(self) -> Path:
        """What proves the operator's passphrase."""
        return self.root / "operator.json"

    @property
    def host(self) -> Path:
        """What belongs to the running server."""
        return self.root / "host"

    @property
    def socket(self) -> Path:
        """Where clients connect."""
        return self.host / "host.sock"

    @property
    def lock(self) -> Path:
        """The file whose lock makes one server the only one."""
        return self.host / "host.lock"

    @property
    def children(self) -> Path:
        """The registry of child processes."""
        return self.host / "children"

    @property
    def log(self) -> Path:
        """The server's log, the newest of its files."""
        return self.host / "logs" / "server.log"


def locate(environment: Mapping[str, str]) -> Path:
    """Say where the state directory is.

    Args:
        environment: The process environment; `PI_WORKFLOWS_STATE_DIR` must be absolute when it is
            set.

    Returns:
        The directory, which need not exist: `~/.pi/agent/workflows` by default.

    Raises:
        PayloadInvalid: `stateDirRelative`: the variable is not an absolute path.
    """
    named = environment.get(STATE_DIR_VARIABLE, "")
    if not named:
        return Path(environment.get("HOME") or "~").expanduser() / _DEFAULT
    if not Path(named).is_absolute():
        raise PayloadInvalid(
            f"{STATE_DIR_VARIABLE} is not an absolute path.",
            code="stateDirRelative",
            field=STATE_DIR_VARIABLE,
            hint="Give the directory from the root on.",
        )
    return Path(os.path.normpath(named))


def prepare(directory: Path) -> StateDirectory:
    """Make the state directory ours alone, before anything in it is opened.

    Args:
        directory: What `locate` said. It and the directories in it are created when they are
            missing.

    Returns:
        The directory, resolved; every directory of it that the server uses has mode 0700.

    Raises:
        AuthorityDenied: A directory belongs to another user, others may write it, or it lies on a
            network file system.
        LimitExceeded: `socketPathTooLong`: no socket can stand in it.
        PayloadInvalid: The path is relative, or something else than a directory stands there.
        Refused: `stateDirInvalid`: the system refuses it.
    """
    try:
        state = StateDirectory(secure_directory(directory))
        require_socket_path(state)
        for inner in (state.host, state.children, state.log.parent):
            if inner.is_symlink():
                raise PayloadInvalid(f"{inner} is a symbolic link.", code="notDirectory")
            secure_directory(inner)
    except (OSError, RuntimeError) as error:
        # RuntimeError: a loop of symbolic links, as `resolve` reports it.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Refused(
            f"The state directory {directory} cannot be used: {reason}.",
            code="stateDirInvalid",
            hint=f"Set {STATE_DIR_VARIABLE} to a directory of your own.",
        ) from None
    return state


def require_socket_path(state: StateDirectory) -> None:
    """Refuse a directory in which the socket's path would be too long.

    Raises:
        LimitExceeded: `socketPathTooLong`.
    """
    length = len(os.fsencode(state.socket))
    if length > SOCKET_PATH_BYTES_MAX:
        raise LimitExceeded(
            f"The socket path {state.socket} has {length} bytes,"
            f" more than {SOCKET_PATH_BYTES_MAX}.",
            code="socketPathTooLong",
            hint=f"Set {STATE_DIR_VARIABLE} to a shorter directory.",
        )
