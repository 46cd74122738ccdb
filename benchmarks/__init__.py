"""How fast the product is, as `scripts/bench` measures it. No part of what is installed.

One module for each family of figures; `benchmarks.catalogue` is the table of them.
"""
