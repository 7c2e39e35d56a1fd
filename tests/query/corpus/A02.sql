-- id: A02
-- verdict: answered
SELECT COUNT(DISTINCT user_id) FROM events

-- bounded:
-- COUNT(DISTINCT unit)
--   add-remove: L1 1 under epsilon, L2 sqrt(1) under rho
--   replace-one: L1 1 under epsilon, L2 sqrt(1) under rho
-- SELECT count(*) * 1
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT s.unit FROM (SELECT CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)
-- GROUP BY unit)
