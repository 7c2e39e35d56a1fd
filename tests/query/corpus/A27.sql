-- id: A27
-- verdict: answered
SELECT region, product, COUNT(*) FROM events GROUP BY region, product

-- bounded:
-- COUNT(*)
--   add-remove: L1 50 under epsilon, L2 sqrt(500) under rho
--   replace-one: L1 100 under epsilon, L2 sqrt(1000) under rho
-- SELECT k0, k1, coalesce(sum((least(n, 10)) * weight), 0)
-- FROM (SELECT *, 1::BIGINT AS weight
-- FROM (SELECT *
-- FROM (SELECT *, row_number() OVER (PARTITION BY unit ORDER BY md5('<sampling key>' || '|' || coalesce(CAST(k0 AS VARCHAR), 'N') || '|' || coalesce(CAST(k1 AS VARCHAR), 'N') || '|' || CAST(unit AS VARCHAR)), k0 NULLS FIRST, k1 NULLS FIRST) AS place
-- FROM (SELECT unit, k0, k1, count(*) AS n
-- FROM (SELECT * FROM (SELECT unit, "c_region" AS k0, "c_product" AS k1 FROM (SELECT d0.code AS "c_region", s."c_product" AS "c_product", s.unit FROM (SELECT CASE WHEN CAST("region" AS VARCHAR) NOT IN ('N') THEN CAST("region" AS VARCHAR) END AS "c_region", CAST("product" AS VARCHAR) AS "c_product", CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s LEFT JOIN (SELECT unnest(['R01', 'R02', 'R03']) AS text, unnest([0, 1, 2]::BIGINT[]) AS code) AS d0 ON s."c_region" = d0.text WHERE s.unit IS NOT NULL)) WHERE k1 IS NOT NULL)
-- GROUP BY unit, k0, k1)) WHERE place <= 5))
-- GROUP BY k0, k1
