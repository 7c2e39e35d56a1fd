-- id: A19
-- verdict: answered
SELECT COUNT(*) FROM events WHERE day BETWEEN DATE '2024-06-01' AND DATE '2024-06-30' AND region IN ('R01','R02')

-- bounded:
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT s.unit FROM (SELECT CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events" WHERE (CAST("region" AS VARCHAR) COLLATE "C" IN ('R01', 'R02')) AND (("day" >= DATE '2024-06-01')) AND (("day" <= DATE '2024-06-30'))) AS s WHERE s.unit IS NOT NULL)
-- GROUP BY unit)
