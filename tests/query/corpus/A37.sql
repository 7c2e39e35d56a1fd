-- id: A37
-- verdict: answered
SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id AND u.age_band = '65+')

-- bounded:
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum((least(n, 10)) * weight), 0)
-- FROM (SELECT *, 1::HUGEINT AS weight
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT unit FROM (SELECT l.* FROM (SELECT s.unit FROM (SELECT CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s WHERE s.unit IS NOT NULL) AS l SEMI JOIN (SELECT * FROM (SELECT d0.code AS "c_users.age_band", s.unit FROM (SELECT CAST("age_band" AS VARCHAR) AS "c_users.age_band", CAST("user_id" AS VARCHAR) AS unit FROM "users") AS s LEFT JOIN (VALUES ('18-24', 0::BIGINT), ('25-34', 1::BIGINT), ('35-64', 2::BIGINT), ('65+', 3::BIGINT)) AS d0(text, code) ON s."c_users.age_band" = d0.text WHERE s.unit IS NOT NULL) WHERE ("c_users.age_band" IN (3::BIGINT))) AS r ON l.unit = r.unit))
-- GROUP BY unit))
