"""From transactions to the rows that are stored and delivered: rows, envelope, raw."""
