"""Let Spark find `format("informix-cdc")` without a register call.

Spark imports every top-level module named `pyspark_*` and registers its `DefaultSource`. An
exception here would hide every Python data source of the session, so this imports next to nothing.
"""

from informix_cdc.spark import InformixCdcDataSource as DefaultSource

__all__ = ["DefaultSource"]
