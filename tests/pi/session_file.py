"""The file of a session, under eyes that notice whatever Pi itself would not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from tests.pi.model import Record


class SessionFile:
    """A session file that must only grow: Pi appends lines, and nobody else writes.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        """Look at a file for the first time; it may not be there yet."""
        self.path = path
        self._seen = b""

    def look(self) -> list[Record]:
        """Return the lines, after asserting that what an earlier look saw is unchanged.

        A kill can cut the last line short: it counts as seen, but is not returned.
        """
        content = self.path.read_bytes() if self.path.exists() else b""
        assert content.startswith(self._seen), "bytes that stood in the session file have changed"
        self._seen = content
        return [cast("Record", json.loads(line)) for line in content.split(b"\n")[:-1]]

    def assert_is(self, entries: list[Record]) -> None:
        """Assert that the file holds a header and what Pi says its entries are, nothing else."""
        header, *lines = self.look()
        assert header["type"] == "session"
        assert header["version"] == 3
        assert lines == entries
        assert self._seen.endswith(b"\n")
