-- id: A33
-- verdict: answered
SELECT WIDTH_BUCKET(amount, 0, 200, 20) AS b, COUNT(*) FROM events GROUP BY b

-- bounded:
-- COUNT(*)
--   add-remove: L1 50 under epsilon, L2 sqrt(500) under rho
--   replace-one: L1 100 under epsilon, L2 sqrt(1000) under rho
-- SELECT k0, coalesce(sum((least(n, 10)) * weight), 0)
-- FROM (WITH pairs AS MATERIALIZED (SELECT unit, k0, count(*) AS n
-- FROM (SELECT * FROM (SELECT unit, TRY_CAST((CASE WHEN "c_amount" IS NOT NULL THEN least((CASE WHEN "c_amount" IS NOT NULL THEN greatest((("c_amount" + 40960::BIGINT) // 40960::BIGINT), 0::BIGINT) END), 21::BIGINT) END) AS TINYINT) AS k0 FROM (SELECT CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) WHERE k0 IS NOT NULL)
-- GROUP BY unit, k0)
-- SELECT pairs.*, coalesce(weight, 1048576) AS weight FROM pairs LEFT JOIN (SELECT *
-- FROM (SELECT unit, coalesce(TRY_CAST(least(1048576::BIGINT, 52428800::BIGINT // total) AS BIGINT), 0) AS weight
-- FROM (SELECT unit, TRY_CAST(sum(least(n, 10)) AS BIGINT) AS total
-- FROM (SELECT * FROM pairs)
-- GROUP BY unit)) WHERE weight < 1048576) AS u ON pairs.unit = u.unit)
-- GROUP BY k0
