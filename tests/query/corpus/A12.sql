-- id: A12
-- verdict: answered
SELECT region, QUANTILE_CONT(amount, 0.5), QUANTILE_CONT(amount, 0.9) FROM events GROUP BY region

-- bounded:
-- QUANTILE(amount, 0.5, 0.9)
--   add-remove: Linf 10 in each of the 4 groups of a unit under epsilon, Linf 10 in each of the 4 groups of a unit under rho
--   replace-one: Linf 10 in each of the 4 groups of a unit under epsilon, Linf 10 in each of the 4 groups of a unit under rho
-- WITH found AS MATERIALIZED (SELECT unit, TRY_CAST("c_region" AS TINYINT) AS k0, ("c_amount" - (0)) AS leaf FROM (SELECT d0.code AS "c_region", CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY(CASE WHEN CAST("region" AS VARCHAR) COLLATE "C" NOT IN ('N') THEN CAST("region" AS VARCHAR) COLLATE "C" END) AS "c_region", TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s LEFT JOIN (SELECT unnest(['R01', 'R02', 'R03']) AS text, unnest([0, 1, 2]::BIGINT[]) AS code) AS d0 ON s."c_region" = d0.text WHERE s.unit IS NOT NULL))
-- SELECT f.k0, leaf, sum(coalesce(share, 1048576)) FROM found AS f LEFT JOIN (SELECT unit, k0, weight * least(held, 10) // nullif(held, 0) AS share
-- FROM (SELECT *, 1048576::BIGINT AS weight
-- FROM (SELECT unit, k0, count(*) AS n, count(leaf) AS held
-- FROM (SELECT l.* FROM found AS l SEMI JOIN (SELECT unit
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT * FROM found)
-- GROUP BY unit) WHERE n > 10) AS r ON l.unit = r.unit)
-- GROUP BY unit, k0)) WHERE weight < 1048576 OR held > 10) AS p ON f.unit = p.unit AND f.k0 IS NOT DISTINCT FROM p.k0
-- WHERE leaf IS NOT NULL GROUP BY f.k0, leaf
