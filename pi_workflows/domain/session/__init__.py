"""The session: what a Pi session did for a run, captured in segments and replayed from them."""
