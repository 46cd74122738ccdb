"""The version of the installed package, which client and server compare."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

_NOT_INSTALLED = "0+source"


@cache
def package_version() -> str:
    """Return the version, such as `1.2.0`; `0+source` when the files were not installed."""
    try:
        return version("pi-workflows")
    except PackageNotFoundError:
        return _NOT_INSTALLED
