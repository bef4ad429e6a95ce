"""Reads Delta tables with DuckDB: a place and a Parquet file a line; its rows are written there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
import duckdb_ext


def main() -> None:
    """Answer until the input ends."""
    database = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    folder = Path(next(iter(duckdb_ext.__path__)))
    (extension,) = folder.glob("extensions/*/*/delta.duckdb_extension")
    database.execute(f"LOAD '{extension}'")
    for line in sys.stdin:
        place, path = line.strip().split("\t")
        try:
            rows = f"SELECT * FROM delta_scan('file://{place}')"
            database.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
            answer = {"rows": []}
        except duckdb.Error as error:
            answer = {"error": str(error)[:2000]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
