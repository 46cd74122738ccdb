"""The attempt: one execution of a node inside one of its visits."""
