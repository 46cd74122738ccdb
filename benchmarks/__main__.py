"""What `scripts/bench` runs."""

from __future__ import annotations

import sys

from benchmarks.program import main

sys.exit(main(sys.argv[1:]))
