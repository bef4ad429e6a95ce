"""Drive a capture by hand and see what came of it."""
