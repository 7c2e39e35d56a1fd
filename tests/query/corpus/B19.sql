-- id: B19
-- verdict: answered
-- note: WHERE names a value of user_id: the answer is about very few persons, so it is mostly noise.
SELECT COUNT(*) FROM events WHERE user_id = 1000123

-- bounded:
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT * FROM (SELECT s."c_user_id" AS "c_user_id", s.unit FROM (SELECT CAST("user_id" AS VARCHAR) COLLATE "C" AS "c_user_id", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL) WHERE ("c_user_id" IN ('1000123')))
-- GROUP BY unit)
