-- id: B14
-- verdict: answered
-- note: CURRENT_DATE is 2024-06-01 here.
SELECT COUNT(*) FROM events WHERE day > CURRENT_DATE - 7

-- bounded:
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT s.unit FROM (SELECT CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events" WHERE (("day" >= DATE '2024-05-26'))) AS s WHERE s.unit IS NOT NULL)
-- GROUP BY unit)
