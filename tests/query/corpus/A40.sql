-- id: A40
-- verdict: answered
WITH x AS (SELECT user_id, day, amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day, product, amount) AS rn FROM events) SELECT AVG(amount) FROM x WHERE rn = 1

-- bounded:
-- AVG(amount)
--   add-remove: L1 2048000 under epsilon, L2 sqrt(4194304000000) under rho
--   replace-one: L1 4096000 under epsilon, L2 sqrt(8388608000000) under rho
-- SELECT coalesce(sum(CASE WHEN m_v0 > 1 THEN ((s_v0) * 1) // nullif(m_v0, 0) ELSE s_v0 END), 0) * 1, coalesce(sum(CASE WHEN m_v0 > 1 THEN (((2048000) * m_v0 - s_v0) * 1) // nullif(m_v0, 0) ELSE (2048000) * m_v0 - s_v0 END), 0) * 1
-- FROM (SELECT unit, count(*) AS n, count(v0) AS m_v0, coalesce(TRY_CAST(sum(v0) AS BIGINT), 0) AS s_v0
-- FROM (SELECT unit, "c_amount" AS v0 FROM (SELECT * FROM (SELECT *, least(row_number() OVER (PARTITION BY unit ORDER BY "c_day" ASC NULLS LAST, "c_product" ASC NULLS LAST, "c_amount" ASC NULLS LAST, "c_product" ASC NULLS LAST, "c_amount" ASC NULLS LAST, "c_day" ASC NULLS LAST), 2147483648) AS "c_events.row_number" FROM (SELECT s."c_product" AS "c_product", CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", CASE WHEN s."c_day" BETWEEN DATE '2024-01-01' AND DATE '2024-12-31' THEN date_diff('day', DATE '1970-01-01', s."c_day") WHEN s."c_day" < DATE '2024-01-01' THEN 19723 WHEN s."c_day" IS NOT NULL THEN 20088 END AS "c_day", s.unit FROM (SELECT CAST("product" AS VARCHAR) COLLATE "C" AS "c_product", TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", TRY_CAST("day" AS DATE) AS "c_day", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) WHERE "c_events.row_number" = 1))
-- GROUP BY unit)
