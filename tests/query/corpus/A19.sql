-- id: A19
-- verdict: answered
SELECT COUNT(*) FROM events WHERE day BETWEEN DATE '2024-06-01' AND DATE '2024-06-30' AND region IN ('R01','R02')

-- bounded:
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum((least(n, 10)) * weight), 0)
-- FROM (SELECT *, 1::HUGEINT AS weight
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT unit FROM (SELECT * FROM (SELECT d0.code AS "c_region", CASE WHEN s."c_day" <= DATE '2024-01-01' THEN 19723 WHEN s."c_day" >= DATE '2024-12-31' THEN 20088 WHEN s."c_day" IS NOT NULL THEN date_diff('day', DATE '1970-01-01', s."c_day") END AS "c_day", s.unit FROM (SELECT CASE WHEN CAST("region" AS VARCHAR) NOT IN ('N') THEN CAST("region" AS VARCHAR) END AS "c_region", TRY_CAST("day" AS DATE) AS "c_day", CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s LEFT JOIN (VALUES ('R01', 0::BIGINT), ('R02', 1::BIGINT), ('R03', 2::BIGINT)) AS d0(text, code) ON s."c_region" = d0.text WHERE s.unit IS NOT NULL) WHERE ((("c_day" >= 19875::BIGINT) AND ("c_day" <= 19904::BIGINT)) AND ("c_region" IN (0::BIGINT, 1::BIGINT)))))
-- GROUP BY unit))
