"""Check whether sessions of Spark on this host can use the jar of the reader in the JVM.

Rule: a program may name the jar itself, and the doctor does not see programs. So a jar that nothing
names is no warning; a jar is one that is missing, or that a session does not use though it is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from informix_capture_client.errors import AccessRefused
from informix_capture_client.findings import Finding, ok, warning
from informix_cdc.host.jar import find_javac, jar_path
from informix_cdc.host.spark import not_checked, spark_version, why_not_here
from informix_cdc.host.spark_defaults import defaults_file, spark_defaults
from informix_cdc.options import BatchOptions

_CHECK = "reader in the jvm"
_SWITCH = "spark.informix-cdc.readInJvm"
_CLASS_PATH = "spark.driver.extraClassPath"
# Those of InformixCdcSource.java, which leaves rows to Python on others.
TESTED_SPARK = ("4.0.", "4.1.", "4.2.", "4.3.")


def check_reader_in_jvm(batches: BatchOptions, environment: Mapping[str, str]) -> Finding:
    """Check that there is a jar, and that nothing prevents its use."""
    if reason := why_not_here(environment):
        return not_checked(_CHECK, reason)
    try:
        path = jar_path()
    except AccessRefused as missing:
        return _missing(missing.message, environment)
    if finding := _unused_by_spark() or _unused_by_default(path, environment):
        return finding
    if batches.flight_address is not None:
        return ok(_CHECK, f"{path} exists; rows that come over Flight are read in Python.")
    return ok(_CHECK, f'{path} exists. Add it to Spark: spark-submit --jars "$(informix-cdc jar)".')


def _missing(found: str, environment: Mapping[str, str]) -> Finding:
    try:
        find_javac(environment)
        remedy = "Compile it once:"
    except AccessRefused as reason:
        remedy = f"{reason.remedy} Then compile it:"
    found = f"{found} Rows are read in Python, which is slower."
    return warning(_CHECK, found, remedy, command=("jar", "--compile"))


def _unused_by_spark() -> Finding | None:
    version = spark_version()
    if version is None or version.startswith(TESTED_SPARK):
        return None
    return warning(
        _CHECK,
        f"the jar was not tested with PySpark {version}: rows are read in Python, which is slower.",
        f"pip install 'pyspark=={TESTED_SPARK[-1]}*'",
    )


def _unused_by_default(jar: Path, environment: Mapping[str, str]) -> Finding | None:
    defaults, file = spark_defaults(environment), defaults_file(environment)
    if defaults.get(_SWITCH, "true").lower() != "true":
        return warning(
            _CHECK,
            f"{file} sets {_SWITCH} to {defaults[_SWITCH]}: rows are read in Python, which is slower.",
            f"Remove {_SWITCH} from {file}.",
        )
    if jar.name in defaults.get(_CLASS_PATH, "") and jar.name not in defaults.get("spark.jars", ""):
        return warning(
            _CHECK,
            f"{file} has the jar in {_CLASS_PATH}, which sends it to no executor: tasks fail with"
            " ClassNotFoundException: informixcdc.SegmentReaders.",
            f"In {file}, name it in spark.jars instead: spark.jars {jar}",
        )
    return None
