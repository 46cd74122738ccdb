"""What every test may use: hypothesis profiles, and fixtures that several packages need."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# The suite takes the same examples on every run: a change fails because of what it changed. A
# machine that two other suites share is slow at times, which says nothing about the code: no
# deadline.
settings.register_profile(
    "suite",
    derandomize=True,
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# Looks for new examples, as long as somebody wants to wait: HYPOTHESIS_PROFILE=soak scripts/test.
settings.register_profile(
    "soak",
    max_examples=10_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# A shell lets what it starts in the background ignore these, and so would every program of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests recorded about themselves, such as how often a harness had to act."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")
