-- id: A23
-- verdict: answered
WITH per_user AS (SELECT user_id, SUM(amount) AS total FROM events GROUP BY user_id) SELECT AVG(total) FROM per_user

-- bounded:
-- AVG(total)
--   add-remove: L1 102400000 under epsilon, L2 sqrt(10485760000000000) under rho
--   replace-one: L1 204800000 under epsilon, L2 sqrt(20971520000000000) under rho
-- SELECT coalesce(sum(CASE WHEN m_v0 > 1 THEN ((s_v0) * 1) // nullif(m_v0, 0) ELSE s_v0 END), 0) * 1, coalesce(sum(CASE WHEN m_v0 > 1 THEN (((102400000) * m_v0::HUGEINT - s_v0) * 1) // nullif(m_v0, 0) ELSE (102400000) * m_v0::HUGEINT - s_v0 END), 0) * 1
-- FROM (SELECT unit, count(*) AS n, count(v0) AS m_v0, coalesce(sum(v0), 0) AS s_v0
-- FROM (SELECT unit, "c_per_unit.sum" AS v0 FROM (SELECT unit, CASE WHEN "c_per_unit.sum" < 0 THEN 0 WHEN "c_per_unit.sum" > 102400000 THEN 102400000 ELSE TRY_CAST("c_per_unit.sum" AS BIGINT) END AS "c_per_unit.sum" FROM (SELECT unit, sum(v0) AS "c_per_unit.sum" FROM (SELECT unit, "c_amount" AS v0 FROM (SELECT CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) GROUP BY unit)))
-- GROUP BY unit)
