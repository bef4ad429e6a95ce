"""AUTO CDC in a declarative pipeline: `python examples/auto_cdc.py`. Needs pyspark[pipelines], Java 17.

The flows are in auto_cdc_flows.py. AUTO CDC needs a table format that supports MERGE; none is released
for Spark 4.3 yet (docs/pipelines.md). So Spark only checks the two AUTO CDC flows here, and runs the
others. For your own server, set SOURCE (its options as JSON) and INFORMIX_CDC_PASSWORD, and run
`spark-pipelines run`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet

from informix_cdc.testing import emulated_source

ORDERS = "stores:informix.orders"
RUN = [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--refresh", "changes,history,orders"]
SPEC = "{{name: shop, storage: 'file://{0}/state', libraries: [{{glob: {{include: 'flows/**'}}}}]}}"

basel, bern, zug = ({"order_num": n, "city": c} for n, c in ((1, "Basel"), (2, "Bern"), (1, "Zug")))
tables = {"informix.orders": "order_num serial, city varchar(20)"}
with emulated_source(tables) as (server, options), tempfile.TemporaryDirectory() as folder:
    server.set_full_row_logging(ORDERS, True)  # as if captured before: makes earliest possible
    with server.transaction() as shop:
        shop.insert(ORDERS, basel)
        shop.insert(ORDERS, bern)
    with server.transaction() as shop:
        shop.update(ORDERS, basel, zug)
        shop.delete(ORDERS, bern)
    with server.transaction() as shop:
        shop.truncate(ORDERS)
    with server.transaction() as shop:
        shop.insert(ORDERS, bern)
    Path(folder, "flows").mkdir()
    shutil.copy(Path(__file__).with_name("auto_cdc_flows.py"), Path(folder, "flows"))
    Path(folder, "spark-pipeline.yml").write_text(SPEC.format(folder))
    source = json.dumps({**options, "startingPosition": "earliest", "truncate": "emit"})
    settings = {"SPARK_REMOTE": "local[1]", "PYSPARK_PYTHON": sys.executable, "SOURCE": source}
    subprocess.run(RUN, cwd=folder, env={**os.environ, **settings}, check=True)
    for table in "history", "orders":
        print(table, pyarrow.parquet.read_table(f"{folder}/spark-warehouse/{table}").to_pylist())
