"""A stream on a Spark cluster that looks for a word in the memory of its own processes.

The word and the options come by standard input: an argument would be in the memory of whoever is
started. Prints, by role, how many copies were found in how many processes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import DataFrame, SparkSession

from end_to_end.stream_on_a_cluster import spark_home
from harness.runs.patience import wait_until

_BLOCK = 1 << 24


def main() -> None:
    plan = json.load(sys.stdin)
    folder, rows = Path(plan["folder"]), []
    os.environ["SPARK_HOME"] = str(spark_home(folder / "spark"))
    builder = SparkSession.builder.master("local-cluster[1,1,1024]")
    builder = builder.config("spark.ui.enabled", "false").config("spark.executor.memory", "512m")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def keep(batch: DataFrame, _number: int) -> None:
        rows.extend(batch.select("order_num").collect())

    frame = spark.readStream.format("informix-cdc").options(**plan["options"]).load()
    checkpoint = str(folder / "checkpoint")
    query = frame.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint).start()
    wait_until(lambda: len(rows) >= plan["rows"] or not query.isActive)
    found = copies_by_role(plan["word"])
    query.stop()
    spark.stop()
    sys.stdout.write(json.dumps({"rows": len(rows), **found}))


def copies_by_role(word: str) -> dict[str, dict[str, int]]:
    """Count the copies of a word in this process and in all that it has started."""
    found: dict[str, dict[str, int]] = {}
    for process in descendants(os.getpid()):
        try:
            role = role_of(process)
            copies = copies_in(process, [word.encode(), word.encode("utf-16-le")])
        except (FileNotFoundError, ProcessLookupError):  # a Python worker has ended meanwhile
            continue
        counted = found.setdefault(role, {"processes": 0, "copies": 0})
        counted["processes"] += 1
        counted["copies"] += copies
    return found


def role_of(process: int) -> str:
    """Tell an executor's processes from the driver's, and a JVM from a Python worker."""
    is_executor = any(b"CoarseGrainedExecutorBackend" in command_of(each) for each in lineage(process))
    kind = "JVM" if b"java" in command_of(process).partition(b"\0")[0] else "Python"
    return f"{'executor' if is_executor else 'driver'} {kind}"


def command_of(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def lineage(process: int) -> Iterator[int]:
    while process > 1:
        yield process
        process = parent_of(process)


def descendants(ancestor: int) -> list[int]:
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    found = []
    for process in numbers:
        try:
            if ancestor in lineage(process):
                found.append(process)
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
    return found


def copies_in(process: int, forms: list[bytes]) -> int:
    """Count how often one of the forms lies in the writable memory of a process."""
    count, overlap = 0, max(map(len, forms))
    maps = Path(f"/proc/{process}/maps").read_text().splitlines()
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for line in maps:
            places, rights, *_ = line.split()
            begin, end = (int(number, 16) for number in places.split("-"))
            if not rights.startswith("rw"):
                continue
            for block in range(begin, end, _BLOCK):
                try:
                    memory.seek(block)
                    held = memory.read(min(_BLOCK + overlap, end - block))
                except OSError:  # a guard page
                    continue
                count += sum(held.count(form) for form in forms)
    return count


if __name__ == "__main__":
    main()
