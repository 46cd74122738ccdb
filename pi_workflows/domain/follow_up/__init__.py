"""Follow-ups: prompts that wait for a run's successful end and then start turns of its session."""
