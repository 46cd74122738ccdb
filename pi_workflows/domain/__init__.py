"""The rules: commands, the events they become, and the pure functions that decide.

Nothing here reads a clock, draws a random number or touches the operating system: time, identifiers
and
randomness arrive with the command. What a decider needs from the database it reads through `Read`.
"""
