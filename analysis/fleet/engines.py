"""Runs questions of proctrace fleet on DuckDB or on Spark: reads one JSON a line, prints columns and rows, one JSON a line."""

import json
import sys


def projection(columns, present):
    """The columns of the documented schema; those that no file has are null."""
    types = {"TEXT": "STRING", "INTEGER": "BIGINT"}
    for name, kind in columns:
        kind = types.get(kind, kind)
        value = name if name in present else "NULL"
        yield f"CAST({value} AS {kind}) AS {name}"


def duckdb(tables, sql):
    import duckdb as engine

    connection = engine.connect()
    for name, table in tables.items():
        if table["files"]:
            rows = connection.read_parquet(table["files"], union_by_name=True, hive_partitioning=False)
        else:
            rows = connection.sql("SELECT 1 AS nothing WHERE false")
        rows.project(", ".join(projection(table["columns"], rows.columns))).create_view(name)
    answer = connection.sql(sql)
    return answer.columns, answer.fetchall()


# Tables that the session of Spark has: to read the columns of many files takes it seconds.
KNOWN = {}


def spark(tables, sql):
    from pyspark.sql import SparkSession

    # One shuffle partition for each core is plenty for summaries.
    session = (
        SparkSession.builder.appName("proctrace")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    for name, table in tables.items():
        if KNOWN.get(name) == table:
            continue
        KNOWN[name] = table
        if table["files"]:
            rows = session.read.option("mergeSchema", "true").parquet(*table["files"])
        else:
            rows = session.sql("SELECT 1 AS nothing WHERE false")
        rows.selectExpr(*projection(table["columns"], rows.columns)).createOrReplaceTempView(name)
    answer = session.sql(sql)
    return answer.columns, [list(row) for row in answer.collect()]


def main():
    # All in one process: Spark takes many seconds to start.
    for line in sys.stdin:
        ask = json.loads(line)
        columns, rows = {"duckdb": duckdb, "spark": spark}[ask["engine"]](ask["tables"], ask["sql"])
        json.dump({"columns": list(columns), "rows": [list(row) for row in rows]}, sys.stdout, default=str)
        print(flush=True)
    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        # Workers that are left behind when the driver ends complain about it.
        SparkSession.builder.getOrCreate().stop()


main()
