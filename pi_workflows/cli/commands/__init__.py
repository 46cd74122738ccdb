"""What can be typed: each command's name, arguments, help and example.

A body loads what it needs when it runs, so that help costs no more than its own text.
"""
