-- Directories that a site searches in vain: failed look-ups over all of its jobs. A site that is not known is '-'.
WITH found AS (
  SELECT coalesce(site, '-') AS site, directory, errno, job, misses
  FROM misses
  WHERE directory IS NOT NULL
)
SELECT site, directory, errno, count(DISTINCT job) AS jobs, CAST(sum(misses) AS BIGINT) AS lookups
FROM found
GROUP BY site, directory, errno
ORDER BY lookups DESC, site, directory, errno
LIMIT 50
