"""The snapshot model of a workflow: its graph, digest, routes, retries and effect keys, all pure.

The server and the runner both decide by these functions, so that a runner can go ahead of the
server's answer and be right.
"""
