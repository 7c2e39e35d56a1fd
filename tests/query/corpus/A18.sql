-- id: A18
-- verdict: answered
SELECT SUM(LEAST(amount, 100)) FROM events

-- bounded:
-- SUM(LEAST(amount, 100))
--   add-remove: L1 4096000 under epsilon, L2 sqrt(16777216000000) under rho
--   replace-one: L1 4096000 under epsilon, L2 sqrt(16777216000000) under rho
-- SELECT coalesce(sum(CASE WHEN s_v0 < 0 THEN 0 WHEN s_v0 > 4096000 THEN 4096000 ELSE s_v0 END), 0) * 1
-- FROM (SELECT unit, count(*) AS n, coalesce(TRY_CAST(sum(v0) AS BIGINT), 0) AS s_v0
-- FROM (SELECT unit, (CASE WHEN "c_amount" IS NOT NULL THEN least("c_amount", 409600::BIGINT) END) AS v0 FROM (SELECT CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL))
-- GROUP BY unit)
