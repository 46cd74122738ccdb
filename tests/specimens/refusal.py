"""The text by which a database that is not exactly ours is refused (the state contract)."""

from __future__ import annotations

REFUSAL = (
    "Pi Workflows durable state is incompatible. Back up and move state.sqlite with its -wal and "
    "-shm files, then start Pi Workflows to create a new state.sqlite database. The incompatible "
    "state was not changed."
)
