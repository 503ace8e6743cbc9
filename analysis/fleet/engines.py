"""Runs a question of proctrace fleet on DuckDB or on Spark: reads it as JSON, prints columns and rows as JSON."""

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
        if table["files"]:
            rows = session.read.option("mergeSchema", "true").parquet(*table["files"])
        else:
            rows = session.sql("SELECT 1 AS nothing WHERE false")
        rows.selectExpr(*projection(table["columns"], rows.columns)).createOrReplaceTempView(name)
    answer = session.sql(sql)
    return answer.columns, [list(row) for row in answer.collect()]


def main():
    ask = json.load(sys.stdin)
    columns, rows = {"duckdb": duckdb, "spark": spark}[ask["engine"]](ask["tables"], ask["sql"])
    json.dump({"columns": list(columns), "rows": [list(row) for row in rows]}, sys.stdout, default=str)


main()
