"""The request: a question that a run asks a person, and its answer."""
