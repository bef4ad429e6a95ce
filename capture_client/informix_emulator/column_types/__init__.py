"""Types of columns: how they are spelled, catalogued and encoded."""
