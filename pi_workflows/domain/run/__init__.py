"""The run: one execution of a workflow, from its queue entry to its end."""
