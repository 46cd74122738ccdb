"""The one write path: commands in groups, their events, the rows those become.

And the way back from the log.
"""
