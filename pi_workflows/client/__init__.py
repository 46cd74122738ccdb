"""Clients of the server.

A blocking one for commands, and one for trio, over the same state without a socket.
"""
