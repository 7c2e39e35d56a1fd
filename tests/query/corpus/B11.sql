-- id: B11
-- verdict: answered
-- scalar: 43.77
SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events)

-- bounded:
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum((least(n, 10)) * weight), 0)
-- FROM (SELECT *, 1::BIGINT AS weight
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT unit FROM (SELECT * FROM (SELECT CASE WHEN s."c_amount" <= 0 THEN 0 WHEN s."c_amount" >= 2048000 THEN 2048000 WHEN s."c_amount" IS NOT NULL THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) END AS "c_amount", s.unit FROM (SELECT nullif(TRY_CAST(TRY("amount") AS DOUBLE), 'nan'::DOUBLE) / 0.000244140625::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s WHERE s.unit IS NOT NULL) WHERE ("c_amount" > 179282::BIGINT)))
-- GROUP BY unit))
