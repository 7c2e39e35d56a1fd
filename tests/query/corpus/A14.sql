-- id: A14
-- verdict: answered
SELECT VAR_SAMP(amount), STDDEV_SAMP(amount) FROM events

-- bounded:
-- VARIANCE(amount)
--   add-remove: L1 41943040000000 under epsilon, L2 sqrt(1759218604441600000000000000) under rho
--   replace-one: L1 83886080000000 under epsilon, L2 sqrt(3518437208883200000000000000) under rho
-- SELECT coalesce(sum(CASE WHEN m_v0 > 10 THEN ((q_v0_from0_1) * 10) // nullif(m_v0, 0) ELSE q_v0_from0_1 END), 0) * 1, coalesce(sum(CASE WHEN m_v0 > 10 THEN ((2 * (2048000 * t_v0_from0_1 - q_v0_from0_1)) * 10) // nullif(m_v0, 0) ELSE 2 * (2048000 * t_v0_from0_1 - q_v0_from0_1) END), 0) * 1, coalesce(sum(CASE WHEN m_v0 > 10 THEN ((m_v0::HUGEINT * 4194304000000 - 4096000 * t_v0_from0_1 + q_v0_from0_1) * 10) // nullif(m_v0, 0) ELSE m_v0::HUGEINT * 4194304000000 - 4096000 * t_v0_from0_1 + q_v0_from0_1 END), 0) * 1
-- FROM (SELECT unit, count(*) AS n, count(v0) AS m_v0, coalesce(sum(((v0 - (0)) // 1)), 0) AS t_v0_from0_1, coalesce(sum(((v0 - (0)) // 1) * ((v0 - (0)) // 1)), 0) AS q_v0_from0_1
-- FROM (SELECT unit, "c_amount" AS v0 FROM (SELECT CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL))
-- GROUP BY unit)
