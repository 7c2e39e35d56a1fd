-- id: A29
-- verdict: answered
SELECT region, SUM(amount) / COUNT(*) AS avg_basket FROM events GROUP BY region

-- bounded:
-- SUM(amount)
--   add-remove: L1 81920000 under epsilon, L2 sqrt(1677721600000000) under rho
--   replace-one: L1 163840000 under epsilon, L2 sqrt(3355443200000000) under rho
-- COUNT(*)
--   add-remove: L1 40 under epsilon, L2 sqrt(400) under rho
--   replace-one: L1 80 under epsilon, L2 sqrt(800) under rho
-- SELECT k0, coalesce(sum(CASE WHEN s_v0 < 0 THEN 0 WHEN s_v0 > 20480000 THEN 20480000 ELSE s_v0 END), 0) * 1, coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, k0, count(*) AS n, coalesce(TRY_CAST(sum(v0) AS BIGINT), 0) AS s_v0
-- FROM (SELECT unit, TRY_CAST("c_region" AS TINYINT) AS k0, "c_amount" AS v0 FROM (SELECT d0.code AS "c_region", CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY(CASE WHEN CAST("region" AS VARCHAR) COLLATE "C" NOT IN ('N') THEN CAST("region" AS VARCHAR) COLLATE "C" END) AS "c_region", TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s LEFT JOIN (SELECT unnest(['R01', 'R02', 'R03']) AS text, unnest([0, 1, 2]::BIGINT[]) AS code) AS d0 ON s."c_region" = d0.text WHERE s.unit IS NOT NULL))
-- GROUP BY unit, k0)
-- GROUP BY k0
