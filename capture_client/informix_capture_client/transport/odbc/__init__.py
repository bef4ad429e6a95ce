"""ODBC: find, load and call IBM's library, without a driver manager.

Rule: only `api` calls the library; other packages use `transport`.
"""
