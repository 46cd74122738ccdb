"""What travels between processes.

Frames, envelopes, operations and their models, and what a client makes of them. Nothing here does
any I/O: bytes go in, messages come out, whatever moves the bytes.

>>> from pi_workflows.protocol.connection import ClientState
>>> from pi_workflows.protocol.envelope import Hello, encode
>>> from pi_workflows.protocol.operations import Operation
>>> state = ClientState(client_id="c-1", package_version="1.0", new_id="{}-1".format)
>>> pending = state.request(Operation.RUN_PAUSE, {}, run_id="build-1", key="k-1")
>>> state.receive(encode(Hello(connection_id="s-1", package_version="1.0")))
>>> state.outgoing()[:58]  # what to write to the socket now
b'{"clientId":"c-1","idempotencyKey":"k-1","operation":"run.'
>>> pending.reply() is None  # until its response is received
True
"""
