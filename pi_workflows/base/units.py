"""Conversions between units, named so that a reader sees which."""

from __future__ import annotations

from typing import Final

NS_PER_MS: Final = 1_000_000
MS_PER_SECOND: Final = 1_000
