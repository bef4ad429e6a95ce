"""The flows of `auto_cdc.py`: what a declarative pipeline of your own needs is this file.

Of a changed key the preimage ends the old key, and the postimage begins the new one. Two AUTO CDC flows
keep SCD 1 and 2 in tables that can merge rows. Two views give the same in any format, computed anew by
each run. With truncate=emit the views end what a TRUNCATE has removed. Spark's AUTO CDC has no word for
it: keep the default for those flows, and when a TRUNCATE ends the query, refresh all tables fully.
"""

import json
import os

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
GONE = "_change_type IN ('delete', 'update_preimage')"
EMPTIED = "_change_type = 'truncate'"
NEXT_EMPTIED = "array_min(filter(emptied, at -> at > begin))"
SEQUENCE = "struct(_commit_version, _change_ordinal)"
END = f"lead({SEQUENCE}) OVER (PARTITION BY order_num ORDER BY {SEQUENCE}) AS end"


@pipelines.table
def changes() -> DataFrame:
    """The rows that were there, and every committed change, once."""
    return spark.readStream.format("informix-cdc").options(**json.loads(os.environ["SOURCE"])).load()


@pipelines.materialized_view
def history() -> DataFrame:
    """SCD 2: every state of every order, and from where to where it was so."""
    changes = spark.read.table("changes")
    emptied = changes.where(EMPTIED).selectExpr(f"collect_list({SEQUENCE}) AS emptied")  # one row
    rows = changes.where(f"NOT {EMPTIED}").selectExpr("*", f"{SEQUENCE} AS begin", END)
    rows = rows.where(f"NOT {GONE}").crossJoin(emptied)
    return rows.selectExpr("order_num", "city", "begin", f"least(`end`, {NEXT_EMPTIED}) AS `end`")


@pipelines.materialized_view
def orders() -> DataFrame:
    """SCD 1: the orders as they are."""
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
