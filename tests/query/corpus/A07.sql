-- id: A07
-- verdict: answered
SELECT product, COUNT(*) AS n FROM events GROUP BY product

-- bounded:
-- COUNT(*)
--   add-remove: L1 50 under epsilon, L2 sqrt(500) under rho
--   replace-one: L1 100 under epsilon, L2 sqrt(1000) under rho
-- SELECT k0, coalesce(sum((least(n, 10)) * weight), 0)
-- FROM (SELECT *, 1::BIGINT AS weight
-- FROM (SELECT *
-- FROM (SELECT *, row_number() OVER (PARTITION BY unit ORDER BY md5('<sampling key>' || '|' || coalesce(CAST(k0 AS VARCHAR), 'N') || '|' || CAST(unit AS VARCHAR)), k0 NULLS FIRST) AS place
-- FROM (SELECT unit, k0, count(*) AS n
-- FROM (SELECT * FROM (SELECT unit, "c_product" AS k0 FROM (SELECT s."c_product" AS "c_product", s.unit FROM (SELECT CAST("product" AS VARCHAR) AS "c_product", CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) WHERE k0 IS NOT NULL)
-- GROUP BY unit, k0)) WHERE place <= 5))
-- GROUP BY k0
