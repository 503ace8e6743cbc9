-- Jobs that are worth a full trace: those whose CPU time is not like that of the other jobs of their command and release, as one
-- in 370 would be by chance, or that are not sound, or with lost records. Of fewer than six jobs none is unusual.
WITH tenths AS (
  SELECT job, day, site, batch_id, command, coalesce(release, '-') AS release, exit_code, lost_records, sound, cpu_us,
    CAST(round(CAST(cpu_us - cpu_us % 100000 AS DOUBLE) / 100000) AS BIGINT) AS cpu
  FROM jobs
  WHERE cpu_us IS NOT NULL AND command IS NOT NULL
),
sums AS (
  SELECT command, release, CAST(count(*) AS BIGINT) AS jobs,
    CAST(sum(cpu) AS BIGINT) AS total,
    CAST(sum(cpu * cpu) AS BIGINT) AS squares
  FROM tenths
  GROUP BY command, release
),
others AS (
  -- Without the job itself, which would be in the spread by which it is judged: of ten jobs none is more than 2.85 standard
  -- deviations from the mean of all.
  SELECT t.job, t.day, t.site, t.batch_id, t.command, t.release, t.exit_code, t.lost_records, t.sound, t.cpu_us,
    t.cpu AS cpu, s.jobs - 1 AS like_it,
    CAST(s.total - t.cpu AS DOUBLE) AS total,
    CAST(s.squares - t.cpu * t.cpu AS DOUBLE) AS squares
  FROM tenths t JOIN sums s ON t.command = s.command AND t.release = s.release
),
spread AS (
  SELECT job, day, site, batch_id, command, release, exit_code, lost_records, sound, cpu_us, cpu, like_it,
    CASE WHEN like_it > 0 THEN total / like_it END AS mean,
    CASE WHEN like_it > 0 THEN total / (like_it * 10) END AS mean_cpu_s,
    -- 12 times that of one more job; 1 / 12 is the variance of the tenths themselves.
    CASE WHEN like_it > 4 THEN ((squares - total * total / like_it) / (like_it - 1) * 12 + 1) * (like_it + 1) / like_it END
      AS variance12,
    CASE WHEN like_it > 4 THEN CAST(1 AS DOUBLE) / (like_it - 1) END AS f
  FROM others
),
judged AS (
  SELECT job, day, site, batch_id, command, release, exit_code, lost_records, sound, cpu_us, mean_cpu_s, like_it,
    (cpu - mean) * (cpu - mean) AS distance, variance12,
    -- 1,000 times Student's t for three standard deviations, by degrees of freedom: the expansion of Fisher and Cornish (1960).
    3000 + f * (7500 + f * (17250 + f * 30200)) AS t
  FROM spread
)
SELECT job, day, site, batch_id, command, release, exit_code, cpu_us, mean_cpu_s, like_it,
  CASE
    WHEN NOT sound THEN 'not sound'
    WHEN lost_records > 0 THEN 'lost records'
    ELSE 'unusual CPU time'
  END AS why
FROM judged
WHERE NOT sound OR lost_records > 0 OR distance * 12000000 > t * t * variance12
ORDER BY why, distance DESC, job
LIMIT 50
