-- id: A32
-- verdict: answered
SELECT UPPER(region) AS r, COUNT(*) FROM events GROUP BY UPPER(region)

-- bounded:
-- COUNT(*)
--   add-remove: L1 40 under epsilon, L2 sqrt(400) under rho
--   replace-one: L1 80 under epsilon, L2 sqrt(800) under rho
-- SELECT k0, coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, k0, count(*) AS n
-- FROM (SELECT unit, TRY_CAST("c_region" AS TINYINT) AS k0 FROM (SELECT d0.code AS "c_region", s.unit FROM (SELECT TRY(CASE WHEN CAST("region" AS VARCHAR) COLLATE "C" NOT IN ('N') THEN CAST("region" AS VARCHAR) COLLATE "C" END) AS "c_region", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s LEFT JOIN (SELECT unnest(['R01', 'R02', 'R03']) AS text, unnest([0, 1, 2]::BIGINT[]) AS code) AS d0 ON s."c_region" = d0.text WHERE s.unit IS NOT NULL))
-- GROUP BY unit, k0)
-- GROUP BY k0
