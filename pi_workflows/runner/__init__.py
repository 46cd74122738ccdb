"""The children that execute workflow code: they run a generation, resolve a workflow, or validate.

The server never loads a workflow file. It starts `python -m pi_workflows.runner --mode MODE`.
"""
