"""Check the host of Spark's driver, and build the jar of the JVM reader.

Rule: quick to import; it only runs `java -version` and a Python interpreter, and leaves nothing behind
except for the jar, which is built on request.
"""

from __future__ import annotations

from informix_cdc.host.checks import check_host
from informix_cdc.host.jar import compile_jar, jar_path, usable_jar
from informix_cdc.host.java import QUIET_LOG, Java, JavaUnfit, find_java

__all__ = [
    "QUIET_LOG",
    "Java",
    "JavaUnfit",
    "check_host",
    "compile_jar",
    "find_java",
    "jar_path",
    "usable_jar",
]
