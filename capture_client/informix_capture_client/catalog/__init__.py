"""What the server says of its tables, its log and itself, asked in plain SQL."""
