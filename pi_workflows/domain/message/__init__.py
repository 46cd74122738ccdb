"""What a Pi session is told by its runs, and the turns that it takes for them."""
