-- id: A35
-- verdict: answered
SELECT region, COUNT(*) FROM events WHERE region LIKE 'R0%' GROUP BY region

-- bounded:
-- COUNT(*)
--   add-remove: L1 30 under epsilon, L2 sqrt(300) under rho
--   replace-one: L1 60 under epsilon, L2 sqrt(600) under rho
-- SELECT k0, coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, k0, count(*) AS n
-- FROM (SELECT * FROM (SELECT unit, TRY_CAST("c_region" AS TINYINT) AS k0 FROM (SELECT d0.code AS "c_region", s.unit FROM (SELECT TRY(CASE WHEN CAST("region" AS VARCHAR) COLLATE "C" NOT IN ('N') THEN CAST("region" AS VARCHAR) COLLATE "C" END) AS "c_region", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events" WHERE (CAST("region" AS VARCHAR) COLLATE "C" IN ('R01', 'R02', 'R03'))) AS s LEFT JOIN (SELECT unnest(['R01', 'R02', 'R03']) AS text, unnest([0, 1, 2]::BIGINT[]) AS code) AS d0 ON s."c_region" = d0.text WHERE s.unit IS NOT NULL)) WHERE k0 IS NOT NULL)
-- GROUP BY unit, k0)
-- GROUP BY k0
