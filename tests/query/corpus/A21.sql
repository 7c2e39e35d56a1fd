-- id: A21
-- verdict: answered
SELECT p.category, COUNT(*) FROM events e JOIN products p ON e.product = p.product GROUP BY p.category

-- bounded:
-- COUNT(*)
--   add-remove: L1 30 under epsilon, L2 sqrt(300) under rho
--   replace-one: L1 60 under epsilon, L2 sqrt(600) under rho
-- SELECT k0, coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, k0, count(*) AS n
-- FROM (SELECT * FROM (SELECT unit, TRY_CAST("c_products.category" AS TINYINT) AS k0 FROM (SELECT l.* EXCLUDE (key), r."c_products.category" FROM (SELECT *, "c_product" AS key FROM (SELECT s."c_product" AS "c_product", s.unit FROM (SELECT CAST("product" AS VARCHAR) COLLATE "C" AS "c_product", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) AS l JOIN (SELECT * FROM (SELECT d0.code AS "c_products.category", s."c_products.product" AS "c_products.product" FROM (SELECT CAST("category" AS VARCHAR) COLLATE "C" AS "c_products.category", CAST("product" AS VARCHAR) COLLATE "C" AS "c_products.product" FROM "products") AS s LEFT JOIN (SELECT unnest(['food', 'toys', 'books']) AS text, unnest([0, 1, 2]::BIGINT[]) AS code) AS d0 ON s."c_products.category" = d0.text) WHERE "c_products.product" IS NOT NULL QUALIFY row_number() OVER (PARTITION BY "c_products.product" ORDER BY "c_products.category" NULLS FIRST) = 1) AS r ON l.key = r."c_products.product")) WHERE k0 IS NOT NULL)
-- GROUP BY unit, k0)
-- GROUP BY k0
