"""Check the Spark of this host, its Java, and the Python of its workers.

Rule: Spark is not loaded. A host without Spark is fine: the command line works without it.

Sources: `SparkContext.__init__` (PYSPARK_PYTHON, else python3 on PATH) and `worker_util.py`
(PYTHON_VERSION_MISMATCH) of PySpark 4.3.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from informix_capture_client.findings import Finding, State, failure, ok, warning
from informix_capture_client.shell_commands import shell_word
from informix_cdc.host.java import JavaUnfit, find_java

OLDEST_SPARK, FIRST_WITH_LIMITS = (4, 0), (4, 2)  # docs/versions.md
_SPARK, _JAVA, _PYTHON = "spark", "java", "python of workers"
_PATIENCE_SECONDS = 20.0
_VERSION = re.compile(r"__version__[^=]*=\s*[\"']((\d+)\.(\d+)[^\"']*)")
_HERE = sys.version_info[:2]
_NO_SPARK = "this Python has no PySpark"
_ASK = (
    "import importlib.util, json, sys; found = importlib.util.find_spec('informix_cdc') is not None;"
    "print(json.dumps([list(sys.version_info[:2]), found]))"
)


def check_spark() -> Finding:
    """Check the version of PySpark."""
    text = _version_file()
    if text is None:
        return not_checked(_SPARK, f"{_NO_SPARK} ({sys.executable})")
    found = _VERSION.search(text)
    if found is None:
        return not_checked(_SPARK, "PySpark does not report its version")
    if (int(found[2]), int(found[3])) < OLDEST_SPARK:
        oldest = ".".join(map(str, OLDEST_SPARK))
        return failure(
            _SPARK,
            f"PySpark {found[1]} is too old: {oldest} is the first version with Python streaming"
            " data sources.",
            f"pip install 'pyspark>={oldest}'; on a cluster, use a platform that has it",
        )
    if (int(found[2]), int(found[3])) < FIRST_WITH_LIMITS:
        return ok(_SPARK, f"PySpark {found[1]}; before 4.2 the limits of a batch work differently.")
    return ok(_SPARK, f"PySpark {found[1]}.")


def check_java(environment: Mapping[str, str]) -> Finding:
    """Check the Java that Spark will use."""
    if reason := why_not_here(environment):
        return not_checked(_JAVA, reason)
    try:
        java = find_java(environment)
    except JavaUnfit as unfit:
        found, _, remedy = str(unfit).partition(". ")
        return failure(_JAVA, f"{found}.", remedy)
    return ok(_JAVA, f"{java.path} is Java {java.version}.")


def check_worker_python(environment: Mapping[str, str]) -> Finding:
    """Check the Python interpreter that workers on this host will use."""
    if reason := why_not_here(environment):
        return not_checked(_PYTHON, reason)
    variable = environment.get("PYSPARK_PYTHON", "")
    name, report = (variable, failure) if variable else ("python3", _unless_configured)
    path = shutil.which(name, path=environment.get("PATH", ""))
    found = "it does not exist" if path is None else _wrong_with(path)
    if not found:
        return ok(_PYTHON, f"{path} is Python {_dotted(_HERE)}, like this one, and has informix-cdc.")
    whence = "PYSPARK_PYTHON" if variable else "from PATH, because PYSPARK_PYTHON is not set"
    remedy = f"export PYSPARK_PYTHON={shell_word(sys.executable)}"
    return report(_PYTHON, f"{path or name} ({whence}) cannot be used: {found}.", remedy)


def _unless_configured(check: str, found: str, remedy: str) -> Finding:
    return warning(check, f"{found} Spark's setting spark.pyspark.python may select another.", remedy)


def _wrong_with(path: str) -> str:
    if path == sys.executable:
        return ""
    answer = _asked(path)
    if answer is None:
        return "it does not run as a Python"
    version, has_package = answer
    if version != _HERE:
        return f"it is Python {_dotted(version)}, but this is {_dotted(_HERE)}, and Spark refuses that"
    return "" if has_package else "it does not have informix-cdc"


def spark_version() -> str | None:
    """Return the version of PySpark; None if there is none, or it does not report it."""
    found = _VERSION.search(_version_file() or "")
    return found[1] if found else None


def _version_file() -> str | None:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name("version.py")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def why_not_here(environment: Mapping[str, str]) -> str:
    """Return why Spark is not checked on this host; empty if it is."""
    if _version_file() is None:
        return _NO_SPARK
    return "SPARK_REMOTE selects a remote Spark" if environment.get("SPARK_REMOTE") else ""


@functools.cache  # an interpreter does not change while a command runs
def _asked(path: str) -> tuple[tuple[int, ...], bool] | None:
    """Return an interpreter's version, and whether it has this package; None if it is not Python."""
    try:
        answer = subprocess.run(
            [path, "-c", _ASK], capture_output=True, timeout=_PATIENCE_SECONDS, check=True
        )
        version, has_package = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return tuple(version), bool(has_package)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def not_checked(check: str, reason: str) -> Finding:
    """Return the finding of a check that was skipped."""
    return Finding(check, State.NOT_CHECKED, reason)
