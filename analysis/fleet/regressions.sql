-- Changes from day to day of the CPU time of jobs of one command and release: the mean with a 95 % interval, and whether the
-- interval of the difference to the day before excludes 0. Days with fewer than two jobs have no interval.
WITH tenths AS (
  -- In tenths of a second: squares of microseconds would not fit into a BIGINT.
  SELECT command, coalesce(release, '-') AS release, day,
    CAST(floor(CAST(cpu_us AS DOUBLE) / 100000) AS BIGINT) AS cpu
  FROM jobs
  WHERE cpu_us IS NOT NULL AND day IS NOT NULL AND command IS NOT NULL
),
days AS (
  SELECT command, release, day, count(*) AS jobs,
    CAST(CAST(sum(cpu) AS BIGINT) AS DOUBLE) AS total,
    CAST(CAST(sum(cpu * cpu) AS BIGINT) AS DOUBLE) AS squares
  FROM tenths
  GROUP BY command, release, day
),
means AS (
  SELECT command, release, day, jobs,
    total / jobs / 10 AS mean_cpu_s,
    CASE WHEN jobs > 1 THEN (squares - total * total / jobs) / (jobs - 1) / jobs / 100 END AS variance
  FROM days
),
pairs AS (
  SELECT command, release, day, jobs, mean_cpu_s, variance,
    lag(release, 1) OVER (PARTITION BY command ORDER BY day, release) AS release_before,
    lag(mean_cpu_s, 1) OVER (PARTITION BY command ORDER BY day, release) AS mean_before_s,
    lag(variance, 1) OVER (PARTITION BY command ORDER BY day, release) AS variance_before
  FROM means
),
changes AS (
  SELECT command, release, day, jobs, mean_cpu_s, release_before,
    sqrt(variance) * 196 / 100 AS margin_s,
    mean_cpu_s - mean_before_s AS change_s,
    sqrt(variance + variance_before) * 196 / 100 AS change_margin_s
  FROM pairs
)
SELECT command, day, release, jobs, mean_cpu_s, margin_s, release_before, change_s, change_margin_s,
  CASE
    WHEN change_margin_s IS NULL THEN NULL
    WHEN change_s > change_margin_s THEN 'slower'
    WHEN change_s < -change_margin_s THEN 'faster'
    ELSE 'the same'
  END AS verdict
FROM changes
ORDER BY command, day, release
