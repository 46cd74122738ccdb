"""The one schema of `state.sqlite`, as text.

It changes in place and is never migrated; README.md says why.
"""

from __future__ import annotations

from importlib.resources import files

__all__ = ["schema_digest_committed", "schema_text"]


def schema_text() -> str:
    """Return the DDL of schema version 1 exactly as it stands in `schema_v1.sql`."""
    return files(__name__).joinpath("schema_v1.sql").read_text(encoding="utf-8")


def schema_digest_committed() -> str:
    """Return the SHA-256 of the DDL's bytes, 64 hex digits, as `schema_v1.sha256` records it."""
    return files(__name__).joinpath("schema_v1.sha256").read_text(encoding="ascii").split()[0]
