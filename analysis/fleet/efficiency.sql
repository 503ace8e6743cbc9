-- Efficiency by site and release: CPU time over the time of the cores that jobs had, to the end of the last process.
WITH known AS (
  SELECT coalesce(site, '-') AS site, coalesce(release, '-') AS release, cpu_us,
    CASE WHEN recorded_us > wall_us THEN recorded_us ELSE wall_us END * cores AS capacity_us, exit_code
  FROM jobs
  WHERE cpu_us IS NOT NULL AND wall_us IS NOT NULL AND cores IS NOT NULL
),
sums AS (
  SELECT site, release, count(*) AS jobs,
    -- Of those whose status is known: without any, nothing is known.
    CASE WHEN count(exit_code) > 0 THEN CAST(sum(CASE WHEN exit_code <> 0 THEN 1 ELSE 0 END) AS BIGINT) END AS failed_jobs,
    CAST(count(*) - count(exit_code) AS BIGINT) AS jobs_without_status,
    CAST(sum(cpu_us) AS BIGINT) AS cpu_us,
    CAST(sum(capacity_us) AS BIGINT) AS capacity_us
  FROM known
  GROUP BY site, release
)
SELECT site, release, jobs, failed_jobs, jobs_without_status, cpu_us, capacity_us,
  CASE WHEN capacity_us > 0 THEN CAST(cpu_us AS DOUBLE) * 100 / capacity_us END AS efficiency_percent
FROM sums
ORDER BY site, release
