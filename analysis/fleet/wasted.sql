-- Programs by the CPU time that they waste over all jobs: in processes that live less than 10 ms, which do little but
-- start, and in longer ones that fail.
WITH sums AS (
  SELECT program, max(class) AS class, count(DISTINCT job) AS jobs,
    CAST(sum(processes) AS BIGINT) AS processes,
    CAST(sum(cpu_us) AS BIGINT) AS cpu_us,
    CAST(sum(short_cpu_us) AS BIGINT) AS short_cpu_us,
    CAST(sum(failed_cpu_us) AS BIGINT) AS failed_cpu_us
  FROM programs
  WHERE program IS NOT NULL AND short_cpu_us IS NOT NULL AND failed_cpu_us IS NOT NULL
  GROUP BY program
)
SELECT program, class, jobs, processes, cpu_us, short_cpu_us, failed_cpu_us,
  short_cpu_us + failed_cpu_us AS wasted_cpu_us
FROM sums
ORDER BY wasted_cpu_us DESC, program
LIMIT 50
