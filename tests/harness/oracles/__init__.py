"""What must come out, kept by whoever did the changes."""
