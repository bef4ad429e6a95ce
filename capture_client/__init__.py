"""Speaks to Informix: transport, session, framing, records, transactions, decoding.

No Spark, no files.
"""
