-- id: A10
-- verdict: answered
SELECT day, COUNT(DISTINCT user_id) FROM events GROUP BY day

-- bounded:
-- COUNT(DISTINCT unit)
--   add-remove: L1 5 under epsilon, L2 sqrt(5) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(10) under rho
-- SELECT k0, count(*) FILTER (WHERE place <= 5) * 1
-- FROM (SELECT *, row_number() OVER (PARTITION BY unit ORDER BY md5('<sampling key>' || '|' || coalesce(CAST(k0 AS VARCHAR), 'N') || '|' || CAST(unit AS VARCHAR)), k0 NULLS FIRST) AS place
-- FROM (SELECT unit, k0, count(*) AS n
-- FROM (SELECT * FROM (SELECT unit, "c_day" AS k0 FROM (SELECT CASE WHEN s."c_day" <= DATE '2024-01-01' THEN 19723 WHEN s."c_day" >= DATE '2024-12-31' THEN 20088 WHEN s."c_day" IS NOT NULL THEN date_diff('day', DATE '1970-01-01', s."c_day") END AS "c_day", s.unit FROM (SELECT TRY_CAST("day" AS DATE) AS "c_day", CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) WHERE k0 IS NOT NULL)
-- GROUP BY unit, k0))
-- GROUP BY k0
