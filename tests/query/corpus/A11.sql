-- id: A11
-- verdict: answered
SELECT DATE_TRUNC('month', day) AS m, SUM(amount) FROM events GROUP BY 1

-- bounded:
-- SUM(amount)
--   add-remove: L1 102400000 under epsilon, L2 sqrt(2097152000000000) under rho
--   replace-one: L1 204800000 under epsilon, L2 sqrt(4194304000000000) under rho
-- SELECT k0, coalesce(sum((CASE WHEN s_v0 < 0 THEN 0 WHEN s_v0 > 20480000 THEN 20480000 ELSE s_v0 END) * weight), 0)
-- FROM (WITH pairs AS MATERIALIZED (SELECT unit, k0, count(*) AS n, coalesce(TRY_CAST(sum(v0) AS BIGINT), 0) AS s_v0
-- FROM (SELECT * FROM (SELECT unit, TRY_CAST(date_diff('day', DATE '1970-01-01', date_trunc('month', (DATE '1970-01-01' + TRY_CAST("c_day" AS INTEGER)))) AS SMALLINT) AS k0, "c_amount" AS v0 FROM (SELECT CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", CASE WHEN s."c_day" BETWEEN DATE '2024-01-01' AND DATE '2024-12-31' THEN date_diff('day', DATE '1970-01-01', s."c_day") WHEN s."c_day" < DATE '2024-01-01' THEN 19723 WHEN s."c_day" IS NOT NULL THEN 20088 END AS "c_day", s.unit FROM (SELECT TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", TRY_CAST("day" AS DATE) AS "c_day", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) WHERE k0 IN (19723, 19754, 19783, 19814, 19844, 19875, 19905, 19936, 19967, 19997, 20028, 20058))
-- GROUP BY unit, k0)
-- SELECT pairs.*, coalesce(weight, 1048576) AS weight FROM pairs LEFT JOIN (SELECT *
-- FROM (SELECT unit, coalesce(TRY_CAST(least(1048576::BIGINT, 52428800::BIGINT // total) AS BIGINT), 0) AS weight
-- FROM (SELECT unit, TRY_CAST(sum(least(n, 10)) AS BIGINT) AS total
-- FROM (SELECT * FROM pairs)
-- GROUP BY unit)) WHERE weight < 1048576) AS u ON pairs.unit = u.unit)
-- GROUP BY k0
