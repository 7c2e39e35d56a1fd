-- id: A39
-- verdict: answered
SELECT region, APPROX_COUNT_DISTINCT(user_id) FROM events GROUP BY region

-- bounded:
-- COUNT(DISTINCT unit)
--   add-remove: L1 4 under epsilon, L2 sqrt(4) under rho
--   replace-one: L1 8 under epsilon, L2 sqrt(8) under rho
-- SELECT k0, count(*) * 1
-- FROM (SELECT unit, k0, count(*) AS n
-- FROM (SELECT unit, TRY_CAST("c_region" AS TINYINT) AS k0 FROM (SELECT d0.code AS "c_region", s.unit FROM (SELECT TRY(CASE WHEN CAST("region" AS VARCHAR) COLLATE "C" NOT IN ('N') THEN CAST("region" AS VARCHAR) COLLATE "C" END) AS "c_region", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s LEFT JOIN (SELECT unnest(['R01', 'R02', 'R03']) AS text, unnest([0, 1, 2]::BIGINT[]) AS code) AS d0 ON s."c_region" = d0.text WHERE s.unit IS NOT NULL))
-- GROUP BY unit, k0)
-- GROUP BY k0
