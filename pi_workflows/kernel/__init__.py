"""The one write path: commands in groups, their events, the rows those become; and the way back from the log."""
