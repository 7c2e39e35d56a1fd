-- id: A20
-- verdict: answered
SELECT u.age_band, AVG(e.amount) FROM events e JOIN users u ON e.user_id = u.user_id GROUP BY u.age_band

-- bounded:
-- AVG(amount)
--   add-remove: L1 20480000 under epsilon, L2 sqrt(419430400000000) under rho
--   replace-one: L1 40960000 under epsilon, L2 sqrt(838860800000000) under rho
-- SELECT k0, coalesce(sum(CASE WHEN m_v0 > 10 THEN ((s_v0) * 10) // nullif(m_v0, 0) ELSE s_v0 END), 0) * 1, coalesce(sum(CASE WHEN m_v0 > 10 THEN (((2048000) * m_v0 - s_v0) * 10) // nullif(m_v0, 0) ELSE (2048000) * m_v0 - s_v0 END), 0) * 1
-- FROM (SELECT * FROM (SELECT l.*, "c_users.age_band" AS k0 FROM (SELECT unit, count(*) AS n, count(v0) AS m_v0, coalesce(TRY_CAST(sum(v0) AS BIGINT), 0) AS s_v0
-- FROM (SELECT unit, "c_amount" AS v0
-- FROM (SELECT CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL))
-- GROUP BY unit) AS l JOIN (SELECT unit, min("c_users.age_band") AS "c_users.age_band", 1::BIGINT AS "c_users.first" FROM (SELECT d0.code AS "c_users.age_band", s.unit FROM (SELECT CAST("age_band" AS VARCHAR) COLLATE "C" AS "c_users.age_band", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "users") AS s LEFT JOIN (SELECT unnest(['18-24', '25-34', '35-64', '65+']) AS text, unnest([0, 1, 2, 3]::BIGINT[]) AS code) AS d0 ON s."c_users.age_band" = d0.text WHERE s.unit IS NOT NULL) GROUP BY unit) AS r ON l.unit = r.unit) WHERE k0 IS NOT NULL)
-- GROUP BY k0
