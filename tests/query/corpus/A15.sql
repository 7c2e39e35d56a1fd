-- id: A15
-- verdict: answered
SELECT COUNT(*) FILTER (WHERE amount > 50), COUNT(*) FROM events

-- bounded:
-- COUNT(COUNT(*))
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum(least(m_v0, 10)), 0) * 1, coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, count(*) AS n, count(v0) AS m_v0
-- FROM (SELECT unit, TRY(CASE WHEN ("c_amount" > 204800::BIGINT) THEN 1::BIGINT ELSE NULL::BIGINT END) AS v0 FROM (SELECT CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL))
-- GROUP BY unit)
