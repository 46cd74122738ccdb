"""What every other package stands on.

Errors, limits, identifiers, time, canonical JSON, SQL as SQL.

Nothing here imports another package of the product.
"""
