"""The flows of `auto_cdc.py`. A declarative pipeline of your own needs only this file.

`changes` has the net effect of each transaction on each key (net_changes, which Spark allows only
outside of a query function): a preimage is left only where its key is gone. Two AUTO CDC flows maintain
SCD 1 and SCD 2 tables. Two views compute the same for any table format, completely in each run. With
truncate=emit, the views end all rows at a TRUNCATE. Spark's AUTO CDC has
no parameter for this: keep the default for those flows, and when a TRUNCATE fails the query, do a full
refresh of all tables. Spark 4.2.0 has SCD type 1 only.
"""

import json
import os

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

from informix_cdc import net_changes

spark = SparkSession.active()
source = spark.readStream.format("informix-cdc").options(**json.loads(os.environ["SOURCE"]))
net = net_changes(source.load(), "order_num")
GONE = "_change_type IN ('delete', 'update_preimage')"
EMPTIED = "_change_type = 'truncate'"
NEXT_EMPTIED = "array_min(filter(emptied, at -> at > begin))"
SEQUENCE = "struct(_commit_version, _change_ordinal)"
END = f"lead({SEQUENCE}) OVER (PARTITION BY order_num ORDER BY {SEQUENCE}) AS end"


@pipelines.table
def changes() -> DataFrame:
    """Existing rows and the net effect of every committed transaction, each once."""
    return net


@pipelines.materialized_view
def history() -> DataFrame:
    """SCD 2: every version of every order, with its begin and end."""
    changes = spark.read.table("changes")
    emptied = changes.where(EMPTIED).selectExpr(f"collect_list({SEQUENCE}) AS emptied")  # one row
    rows = changes.where(f"NOT {EMPTIED}").selectExpr("*", f"{SEQUENCE} AS begin", END)
    rows = rows.where(f"NOT {GONE}").crossJoin(emptied)
    return rows.selectExpr("order_num", "city", "begin", f"least(`end`, {NEXT_EMPTIED}) AS `end`")


@pipelines.materialized_view
def orders() -> DataFrame:
    """SCD 1: the current orders."""
    return spark.read.table("history").where("end IS NULL").select("order_num", "city")


for scd in 1, 2:
    pipelines.create_streaming_table(f"orders_scd{scd}")
    pipelines.create_auto_cdc_flow(
        target=f"orders_scd{scd}",
        source="changes",
        keys=["order_num"],
        sequence_by=SEQUENCE,
        apply_as_deletes=GONE,
        column_list=["order_num", "city"],
        stored_as_scd_type=scd,
    )
