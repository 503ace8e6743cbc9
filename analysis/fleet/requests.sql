-- What to request for a step of each group, by what the largest needed in any job: memory is its peak and as much as that
-- is above the mean over jobs, at least a tenth; disk space and wall time are without a margin.
WITH sums AS (
  SELECT step_group, count(DISTINCT job) AS jobs,
    max(cores) AS cores,
    max(memory_peak_bytes) AS memory_peak_bytes,
    CAST(sum(memory_peak_bytes) AS BIGINT) AS memory_bytes_sum,
    count(memory_peak_bytes) AS known,
    max(written_peak_bytes) AS written_peak_bytes,
    max(wall_max_us) AS wall_max_us
  FROM step_groups
  WHERE step_group IS NOT NULL AND memory_peak_bytes IS NOT NULL AND cores IS NOT NULL
  GROUP BY step_group
),
means AS (
  SELECT step_group, jobs, cores, memory_peak_bytes, written_peak_bytes, wall_max_us,
    CAST(round(CAST(memory_bytes_sum AS DOUBLE) / known) AS BIGINT) AS memory_mean_bytes,
    CAST(round(CAST(memory_peak_bytes AS DOUBLE) / 10) AS BIGINT) AS tenth_bytes
  FROM sums
)
SELECT step_group, jobs, cores, memory_peak_bytes AS peak_bytes,
  memory_peak_bytes + CASE
    WHEN memory_peak_bytes - memory_mean_bytes > tenth_bytes THEN memory_peak_bytes - memory_mean_bytes
    ELSE tenth_bytes END AS memory_bytes,
  written_peak_bytes AS disk_bytes, wall_max_us AS wall_us
FROM means
ORDER BY memory_bytes DESC, step_group
LIMIT 50
