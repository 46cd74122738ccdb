"""The decision: a question that only a person may answer, asked once and resolved once."""
