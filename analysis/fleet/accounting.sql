-- Jobs whose CPU time is not what the batch system reports, by 2 % or more, and why. Where the batch system's figure is not
-- known, that of wait(2) stands for it.
WITH told AS (
  SELECT job, day, site, batch_system, batch_id, cpu_us, unwaited_cpu_us, sampled_cpu_us, unseen_cpu_us, late_cpu_us,
    outside_cpu_us, hidden_cpu_us,
    coalesce(batch_cpu_us, waited_cpu_us) AS reported_us,
    CASE WHEN batch_cpu_us IS NULL THEN 'wait' ELSE 'batch system' END AS reported_by
  FROM jobs
),
missing AS (
  SELECT job, day, site, batch_system, batch_id, cpu_us, unwaited_cpu_us, sampled_cpu_us, unseen_cpu_us, late_cpu_us,
    outside_cpu_us, hidden_cpu_us, reported_us, reported_by, cpu_us - reported_us AS missing_us
  FROM told
  WHERE cpu_us IS NOT NULL AND reported_us IS NOT NULL
)
SELECT job, day, site, batch_system, batch_id, cpu_us, reported_us, reported_by, missing_us, unwaited_cpu_us,
  sampled_cpu_us,
  CASE
    WHEN missing_us < 0 THEN 'the batch system counts processes that are not recorded'
    WHEN 2 * unwaited_cpu_us >= missing_us THEN 'processes that nobody waited for'
    WHEN 2 * outside_cpu_us >= missing_us THEN 'processes that left the tree'
    WHEN 2 * hidden_cpu_us >= missing_us THEN 'children of threads, which a sampler does not look for'
    WHEN 2 * late_cpu_us >= missing_us THEN 'after the last reading of a sampler'
    WHEN 2 * unseen_cpu_us >= missing_us THEN 'processes between two readings of a sampler'
    ELSE 'several reasons, or none of the known ones'
  END AS why
FROM missing
WHERE 50 * abs(missing_us) >= cpu_us
ORDER BY abs(missing_us) DESC, job
LIMIT 50
