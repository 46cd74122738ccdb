"""The command line: a client of the server for people and for scripts.

Text for people, plain lines for pipes, one line of JSON with `--json`. Offline commands call
`audit`; nothing else here opens a database.
"""
