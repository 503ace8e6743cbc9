-- Jobs that are worth a full trace: more than three standard deviations from the mean CPU time of their command and release,
-- or not sound, or with lost records.
WITH tenths AS (
  SELECT job, day, site, batch_id, command, coalesce(release, '-') AS release, exit_code, lost_records, sound, cpu_us,
    CAST(round(CAST(cpu_us - cpu_us % 100000 AS DOUBLE) / 100000) AS BIGINT) AS cpu
  FROM jobs
  WHERE cpu_us IS NOT NULL AND command IS NOT NULL
),
sums AS (
  SELECT command, release, count(*) AS jobs,
    CAST(CAST(sum(cpu) AS BIGINT) AS DOUBLE) AS total,
    CAST(CAST(sum(cpu * cpu) AS BIGINT) AS DOUBLE) AS squares
  FROM tenths
  GROUP BY command, release
),
spread AS (
  SELECT command, release, jobs, total / jobs AS mean, total / (jobs * 10) AS mean_cpu_s,
    CASE WHEN jobs > 1 THEN (squares - total * total / jobs) / (jobs - 1) END AS variance
  FROM sums
),
judged AS (
  SELECT t.job, t.day, t.site, t.batch_id, t.command, t.release, t.exit_code, t.lost_records, t.sound, t.cpu_us,
    s.jobs AS like_it, s.mean_cpu_s,
    (t.cpu - s.mean) * (t.cpu - s.mean) AS distance, 9 * s.variance AS allowed
  FROM tenths t JOIN spread s ON t.command = s.command AND t.release = s.release
)
SELECT job, day, site, batch_id, command, release, exit_code, cpu_us, mean_cpu_s, like_it,
  CASE
    WHEN NOT sound THEN 'not sound'
    WHEN lost_records > 0 THEN 'lost records'
    ELSE 'unusual CPU time'
  END AS why
FROM judged
WHERE NOT sound OR lost_records > 0 OR (distance > allowed AND allowed > 0)
ORDER BY why, distance DESC, job
LIMIT 50
