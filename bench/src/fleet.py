"""Times a group-by over the files of a fleet on DuckDB or Spark: prints engine, files, rows and seconds, one JSON a line."""

import json
import sys
import time

SQL = "SELECT program, sum(processes) AS processes, sum(cpu_us) AS cpu_us FROM programs GROUP BY program"


def duckdb(sets):
    import duckdb as engine

    for files in sets:
        # It would draw its progress between our lines.
        connection = engine.connect()
        connection.execute("SET enable_progress_bar = false")
        yield files, lambda: connection.execute(
            f"SELECT count(*), sum(processes) FROM ({SQL.replace('FROM programs', 'FROM read_parquet($files)')})",
            {"files": files},
        ).fetchall()


def spark(sets):
    from pyspark.sql import SparkSession

    session = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def run(files):
        session.read.parquet(*files).createOrReplaceTempView("programs")
        return session.sql(f"SELECT count(*), sum(processes) FROM ({SQL})").collect()

    # The first question of a session is slow, whatever it is.
    run(sets[0][:10])
    for files in sets:
        yield files, lambda: run(files)
    session.stop()


ask = json.load(sys.stdin)
for files, run in {"duckdb": duckdb, "spark": spark}[ask["engine"]](ask["sets"]):
    seconds = []
    for _ in range(ask["rounds"]):
        begun = time.monotonic()
        answer = run()
        seconds.append(time.monotonic() - begun)
    line = {"files": len(files), "programs": answer[0][0], "processes": int(answer[0][1]), "seconds": sorted(seconds)}
    print(json.dumps(line), flush=True)
