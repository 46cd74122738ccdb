"""What a command says when it fails, whoever said no."""

from __future__ import annotations

from pi_workflows.base.errors import Corrupt, Unavailable
from pi_workflows.cli.failure import Failure


def test_damage_found_by_the_server_is_damage() -> None:
    """A value that the server finds damaged has the exit code of corrupt state."""
    said = Failure.of(Unavailable("It is damaged.", code=Corrupt.code))
    assert said.exit_code == Corrupt.exit_code
    assert Failure.of(Unavailable("It is stopping.", code="stopping")).exit_code == 3


def test_a_path_of_any_bytes_can_be_told() -> None:
    """A failure that names bytes which are not UTF-8 still makes a document."""
    said = Failure("code", "no file a\udcff", 1, field="a\udcff", hint="see a\udcff")
    assert said.document()["message"] == r"no file a\udcff"
