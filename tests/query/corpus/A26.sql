-- id: A26
-- verdict: answered
WITH first_buy AS (SELECT user_id, MIN(day) AS d FROM events GROUP BY user_id) SELECT d, COUNT(*) FROM first_buy GROUP BY d

-- bounded:
-- COUNT(*)
--   add-remove: L1 1 under epsilon, L2 sqrt(1) under rho
--   replace-one: L1 2 under epsilon, L2 sqrt(2) under rho
-- SELECT k0, coalesce(sum(least(n, 1)), 0) * 1
-- FROM (SELECT unit, k0, count(*) AS n
-- FROM (SELECT * FROM (SELECT unit, TRY_CAST("c_per_unit.min" AS SMALLINT) AS k0 FROM (SELECT unit, CASE WHEN "c_per_unit.min" < 19723 THEN 19723 WHEN "c_per_unit.min" > 20088 THEN 20088 ELSE TRY_CAST("c_per_unit.min" AS BIGINT) END AS "c_per_unit.min" FROM (SELECT unit, min(v0) AS "c_per_unit.min" FROM (SELECT unit, "c_day" AS v0 FROM (SELECT CASE WHEN s."c_day" BETWEEN DATE '2024-01-01' AND DATE '2024-12-31' THEN date_diff('day', DATE '1970-01-01', s."c_day") WHEN s."c_day" < DATE '2024-01-01' THEN 19723 WHEN s."c_day" IS NOT NULL THEN 20088 END AS "c_day", s.unit FROM (SELECT TRY_CAST("day" AS DATE) AS "c_day", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) GROUP BY unit))) WHERE k0 IS NOT NULL)
-- GROUP BY unit, k0)
-- GROUP BY k0
