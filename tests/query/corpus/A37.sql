-- id: A37
-- verdict: answered
SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id AND u.age_band = '65+')

-- bounded:
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT l.* FROM (SELECT s.unit FROM (SELECT CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL) AS l SEMI JOIN (SELECT s.unit FROM (SELECT CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "users" WHERE (CAST("age_band" AS VARCHAR) COLLATE "C" IN ('65+'))) AS s WHERE s.unit IS NOT NULL) AS r ON l.unit = r.unit)
-- GROUP BY unit)
