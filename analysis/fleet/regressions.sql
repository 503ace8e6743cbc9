-- Changes from day to day of the CPU time of jobs of one command and release: the mean with a 95 % interval, and whether the
-- interval of the difference to the day before excludes 0. Days with fewer than two jobs have no interval.
WITH tenths AS (
  -- In tenths of a second: squares of microseconds would not fit into a BIGINT.
  SELECT command, coalesce(release, '-') AS release, day,
    CAST(round(CAST(cpu_us - cpu_us % 100000 AS DOUBLE) / 100000) AS BIGINT) AS cpu
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
    total / (jobs * 10) AS mean_cpu_s,
    -- The square of 1.96 standard errors.
    CASE WHEN jobs > 1 THEN (squares - total * total / jobs) * 38416 / ((jobs - 1) * jobs * 1000000) END AS margin2
  FROM days
),
pairs AS (
  SELECT command, release, day, jobs, mean_cpu_s, margin2,
    lag(release, 1) OVER (PARTITION BY command ORDER BY day, release) AS release_before,
    lag(mean_cpu_s, 1) OVER (PARTITION BY command ORDER BY day, release) AS mean_before_s,
    lag(margin2, 1) OVER (PARTITION BY command ORDER BY day, release) AS margin2_before
  FROM means
),
changes AS (
  SELECT command, release, day, jobs, mean_cpu_s, release_before,
    sqrt(margin2) AS margin_s,
    mean_cpu_s - mean_before_s AS change_s,
    sqrt(margin2 + margin2_before) AS change_margin_s
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
