"""The viewer's tables: what every renderer is told has changed."""
