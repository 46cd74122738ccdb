"""The comparison that ends every test that wrote."""

from __future__ import annotations

from pi_workflows.kernel.comparison import compare
from pi_workflows.kernel.rebuild import rebuild
from pi_workflows.kernel.verify import verify
from pi_workflows.store.database import Store
from pi_workflows.store.scratch import create_scratch
from projections import route


def assert_rebuilds(store: Store) -> None:
    """Fail unless replaying the log gives every compared row byte for byte, and all rules hold.

    Args:
        store: The open database.
    """
    with store.snapshot() as live:
        with create_scratch(None) as scratch:
            rebuild(live, scratch, route)
            with scratch.snapshot() as rebuilt:
                differences = compare(live, rebuilt)
        assert differences == [], differences
        result = verify(live, quick=True, scratch=lambda: create_scratch(None), projectors=route)
    found = [(v.code, v.count, v.run_ids) for v in result.violations]
    assert found == [], found
