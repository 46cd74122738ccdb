"""Workflows that the package ships, each a file `<stem>_workflow.py` as everybody writes them.

They are started by name and included as `builtin:name`; a project's or a user's file of the same
name goes first where no prefix says otherwise.
"""
