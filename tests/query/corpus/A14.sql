-- id: A14
-- verdict: answered
SELECT VAR_SAMP(amount), STDDEV_SAMP(amount) FROM events

-- bounded:
-- VARIANCE(amount)
--   add-remove: L1 10485760 under epsilon, L2 sqrt(109951162777600) under rho
--   replace-one: L1 20971520 under epsilon, L2 sqrt(219902325555200) under rho
-- SELECT coalesce(sum(CASE WHEN m_v0 > 10 THEN ((q_v0_from0_2000) * 10) // nullif(m_v0, 0) ELSE q_v0_from0_2000 END), 0) * 1, coalesce(sum(CASE WHEN m_v0 > 10 THEN ((2 * (1024 * t_v0_from0_2000 - q_v0_from0_2000)) * 10) // nullif(m_v0, 0) ELSE 2 * (1024 * t_v0_from0_2000 - q_v0_from0_2000) END), 0) * 1, coalesce(sum(CASE WHEN m_v0 > 10 THEN ((m_v0 * 1048576 - 2048 * t_v0_from0_2000 + q_v0_from0_2000) * 10) // nullif(m_v0, 0) ELSE m_v0 * 1048576 - 2048 * t_v0_from0_2000 + q_v0_from0_2000 END), 0) * 1
-- FROM (SELECT unit, count(*) AS n, count(v0) AS m_v0, coalesce(TRY_CAST(sum(((v0 - (0)) // 2000)) AS BIGINT), 0) AS t_v0_from0_2000, coalesce(TRY_CAST(sum(((v0 - (0)) // 2000) * ((v0 - (0)) // 2000)) AS BIGINT), 0) AS q_v0_from0_2000
-- FROM (SELECT unit, "c_amount" AS v0 FROM (SELECT CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s WHERE s.unit IS NOT NULL))
-- GROUP BY unit)
