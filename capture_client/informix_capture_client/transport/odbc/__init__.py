"""ODBC: IBM's library found, loaded and called, without a driver manager.

Rule: `api` alone calls the library; what others need of it is offered by `transport`.
"""
