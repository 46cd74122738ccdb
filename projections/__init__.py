"""Events become rows: the only code that writes a domain table or a viewer table.

Live and in replay.
"""
