-- Who starts short commands: pairs of a spawner and a command of the system, by the number of processes that live less than
-- 10 ms.
WITH pairs AS (
  SELECT coalesce(spawner, '-') AS spawner, program, job, processes,
    lives_1ms + lives_10ms AS short_processes, cpu_us, short_cpu_us
  FROM programs
  WHERE class = 'command' AND program IS NOT NULL AND lives_1ms IS NOT NULL AND lives_10ms IS NOT NULL
)
SELECT spawner, program, count(DISTINCT job) AS jobs,
  CAST(sum(processes) AS BIGINT) AS processes,
  CAST(sum(short_processes) AS BIGINT) AS short_processes,
  CAST(sum(short_cpu_us) AS BIGINT) AS short_cpu_us
FROM pairs
GROUP BY spawner, program
ORDER BY short_processes DESC, spawner, program
LIMIT 50
