-- id: A28
-- verdict: answered
SELECT COUNT(DISTINCT product) FROM events

-- bounded:
-- COUNT(DISTINCT product)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT count(DISTINCT v0) * 1
-- FROM (SELECT *
-- FROM (SELECT unit, v0
-- FROM (SELECT unit, "c_product" AS v0 FROM (SELECT s."c_product" AS "c_product", s.unit FROM (SELECT CAST("product" AS VARCHAR) AS "c_product", CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s WHERE s.unit IS NOT NULL))
-- GROUP BY unit, v0) WHERE v0 IS NOT NULL QUALIFY row_number() OVER (PARTITION BY unit ORDER BY md5('<sampling key>' || '|' || coalesce(CAST(v0 AS VARCHAR), 'N') || '|' || CAST(unit AS VARCHAR)), v0) <= 10)
