-- Changes from day to day of the CPU time of jobs of one command and release: the mean with a 95 % interval, and whether the
-- interval of the difference to the day before excludes 0. Days with fewer than three jobs have no interval. One in twenty days
-- without a change is outside of it by chance.
WITH tenths AS (
  -- In tenths of a second: squares of microseconds would not fit into a BIGINT.
  SELECT command, coalesce(release, '-') AS release, day,
    CAST(round(CAST(cpu_us - cpu_us % 100000 AS DOUBLE) / 100000) AS BIGINT) AS cpu
  FROM jobs
  -- The CPU time of a part of a job is not that of the job.
  WHERE cpu_us IS NOT NULL AND day IS NOT NULL AND command IS NOT NULL AND NOT coalesce(partial, false)
),
days AS (
  SELECT command, release, day, CAST(count(*) AS BIGINT) AS jobs,
    CAST(CAST(sum(cpu) AS BIGINT) AS DOUBLE) AS total,
    CAST(CAST(sum(cpu * cpu) AS BIGINT) AS DOUBLE) AS squares
  FROM tenths
  GROUP BY command, release, day
),
means AS (
  SELECT command, release, day, jobs,
    total / (jobs * 10) AS mean_cpu_s,
    -- Not 0: Spark refuses to divide by that.
    CASE WHEN jobs > 2 THEN jobs - 1 END AS freedom,
    -- The square of the standard error, in ten-thousandths of a second; 1 / 12 is the variance of the tenths themselves.
    CASE WHEN jobs > 2 THEN ((squares - total * total / jobs) / (jobs - 1) * 12 + 1) / (jobs * 120000000000) END AS error2
  FROM days
),
pairs AS (
  SELECT command, release, day, jobs, mean_cpu_s, freedom, error2,
    lag(release, 1) OVER (PARTITION BY command ORDER BY day, release) AS release_before,
    lag(mean_cpu_s, 1) OVER (PARTITION BY command ORDER BY day, release) AS mean_before_s,
    lag(freedom, 1) OVER (PARTITION BY command ORDER BY day, release) AS freedom_before,
    lag(error2, 1) OVER (PARTITION BY command ORDER BY day, release) AS error2_before
  FROM means
),
changes AS (
  SELECT command, release, day, jobs, mean_cpu_s, release_before, error2,
    CAST(1 AS DOUBLE) / freedom AS f,
    mean_cpu_s - mean_before_s AS change_s,
    error2 + error2_before AS change_error2,
    -- 1 / degrees of freedom of the difference, by Welch (1947).
    (error2 * error2 / freedom + error2_before * error2_before / freedom_before)
      / ((error2 + error2_before) * (error2 + error2_before)) AS g
  FROM pairs
),
margins AS (
  SELECT command, release, day, jobs, mean_cpu_s, release_before, change_s,
    -- 10,000 times Student's t for 95 %, by degrees of freedom: the expansion of Fisher and Cornish (1960).
    sqrt(error2) * (19600 + f * (23724 + f * (28226 + f * (25560 + f * 15900)))) AS margin_s,
    sqrt(change_error2) * (19600 + g * (23724 + g * (28226 + g * (25560 + g * 15900)))) AS change_margin_s
  FROM changes
)
SELECT command, day, release, jobs, mean_cpu_s, margin_s, release_before, change_s, change_margin_s,
  CASE
    WHEN change_margin_s IS NULL THEN NULL
    WHEN change_s > change_margin_s THEN 'slower'
    WHEN change_s < -change_margin_s THEN 'faster'
    ELSE 'the same'
  END AS verdict
FROM margins
ORDER BY command, day, release
