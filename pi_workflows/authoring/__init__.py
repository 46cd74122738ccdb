"""The workflow language: what a workflow file is written in, and how such a file is loaded.

The names for authors are those of `pi_workflows` itself; this package is where they live. It
imports neither the server nor the store, so a workflow file never pulls them in.
"""
