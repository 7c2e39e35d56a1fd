-- id: A25
-- verdict: answered
SELECT COUNT(*) FROM (SELECT user_id FROM events WHERE amount > 100 GROUP BY user_id HAVING COUNT(*) >= 3)

-- bounded:
-- COUNT(*)
--   add-remove: L1 1 under epsilon, L2 sqrt(1) under rho
--   replace-one: L1 1 under epsilon, L2 sqrt(1) under rho
-- SELECT coalesce(sum(least(n, 1)), 0) * 1
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT * FROM (SELECT unit, CASE WHEN "c_per_unit.count" < 1 THEN 1 WHEN "c_per_unit.count" > 50 THEN 50 ELSE TRY_CAST("c_per_unit.count" AS BIGINT) END AS "c_per_unit.count" FROM (SELECT unit, count(*) AS "c_per_unit.count" FROM (SELECT unit FROM (SELECT s.unit FROM (SELECT CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events" WHERE ((TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE > 409600.5::DOUBLE AND TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE <= 'inf'::DOUBLE))) AS s WHERE s.unit IS NOT NULL)) GROUP BY unit)) WHERE ("c_per_unit.count" >= 3::BIGINT))
-- GROUP BY unit)
