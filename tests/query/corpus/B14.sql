-- id: B14
-- verdict: answered
-- note: CURRENT_DATE is 2024-06-01 here.
SELECT COUNT(*) FROM events WHERE day > CURRENT_DATE - 7

-- bounded:
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum((least(n, 10)) * weight), 0)
-- FROM (SELECT *, 1::HUGEINT AS weight
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT unit FROM (SELECT * FROM (SELECT CASE WHEN s."c_day" <= DATE '2024-01-01' THEN 19723 WHEN s."c_day" >= DATE '2024-12-31' THEN 20088 WHEN s."c_day" IS NOT NULL THEN date_diff('day', DATE '1970-01-01', s."c_day") END AS "c_day", s.unit FROM (SELECT TRY_CAST("day" AS DATE) AS "c_day", CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s WHERE s.unit IS NOT NULL) WHERE ("c_day" > 19868::BIGINT)))
-- GROUP BY unit))
