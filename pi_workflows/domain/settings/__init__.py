"""Settings: what people may change about a run while it goes on, by the rules of its workflow."""
