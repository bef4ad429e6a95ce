"""From interleaved records to whole transactions, in commit order."""
