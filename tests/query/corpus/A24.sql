-- id: A24
-- verdict: answered
WITH per_user AS (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id) SELECT n, COUNT(*) FROM per_user GROUP BY n ORDER BY n

-- bounded:
-- COUNT(*)
--   add-remove: L1 1 under epsilon, L2 sqrt(1) under rho
--   replace-one: L1 2 under epsilon, L2 sqrt(2) under rho
-- SELECT k0, coalesce(sum(least(n, 1)), 0) * 1
-- FROM (SELECT unit, k0, count(*) AS n
-- FROM (SELECT * FROM (SELECT unit, TRY_CAST("c_per_unit.count" AS TINYINT) AS k0 FROM (SELECT unit, CASE WHEN "c_per_unit.count" < 1 THEN 1 WHEN "c_per_unit.count" > 50 THEN 50 ELSE TRY_CAST("c_per_unit.count" AS BIGINT) END AS "c_per_unit.count" FROM (SELECT unit, count(*) AS "c_per_unit.count" FROM (SELECT unit FROM (SELECT s.unit FROM (SELECT CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) GROUP BY unit))) WHERE k0 IS NOT NULL)
-- GROUP BY unit, k0)
-- GROUP BY k0
