"""The effect: something outside the database that must not be repeated in silence."""
