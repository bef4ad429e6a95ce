"""What is typed: a file for each word of `informix-cdc`.

Rule: read what was given, call an operation, show the answer. `cli.py` declares the words and loads a
word's file when it is typed, so that nothing is exported here.
"""

__all__: list[str] = []
