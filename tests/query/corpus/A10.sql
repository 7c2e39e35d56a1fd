-- id: A10
-- verdict: answered
SELECT day, COUNT(DISTINCT user_id) FROM events GROUP BY day

-- bounded:
-- COUNT(DISTINCT unit)
--   add-remove: L1 5 under epsilon, L2 sqrt(5) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(10) under rho
-- SELECT k0, units * 1
-- FROM (WITH found AS MATERIALIZED (SELECT unit, k0
-- FROM (SELECT * FROM (SELECT unit, "c_day" AS k0 FROM (SELECT CASE WHEN s."c_day" <= DATE '2024-01-01' THEN 19723 WHEN s."c_day" >= DATE '2024-12-31' THEN 20088 WHEN s."c_day" IS NOT NULL THEN date_diff('day', DATE '1970-01-01', s."c_day") END AS "c_day", s.unit FROM (SELECT TRY_CAST("day" AS DATE) AS "c_day", CAST("user_id" AS VARCHAR) AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) WHERE k0 IS NOT NULL)
-- GROUP BY unit, k0),
-- o AS MATERIALIZED (SELECT *, row_number() OVER (ORDER BY k0 NULLS FIRST) AS r FROM (SELECT k0, TRY_CAST('0x' || substr(m, 1, 8) AS BIGINT) AS a, TRY_CAST('0x' || substr(m, 9, 8) AS BIGINT) AS b FROM (SELECT k0, md5('<sampling key>' || '|' || coalesce(CAST(k0 AS VARCHAR), 'N')) AS m FROM (SELECT k0 FROM found GROUP BY k0)))),
-- placed AS (SELECT found.unit, r, (a * y + b) % 2147483647 AS h FROM found JOIN o ON found.k0 IS NOT DISTINCT FROM o.k0 JOIN (SELECT unit, ((1025440144 + 3379553291 * ((id >> 0) & 4194303) + 4170336341 * ((id >> 22) & 4194303) + 2733530035 * ((id >> 44) & 4194303)) % 2147483647) AS y FROM (SELECT unit, coalesce(CASE WHEN regexp_full_match(unit, '0|-?[1-9][0-9]{0,18}') THEN TRY_CAST(unit AS BIGINT) END, TRY_CAST('0x' || substr(md5(unit), 1, 15) AS BIGINT)) AS id FROM (SELECT unit FROM found GROUP BY unit))) AS u ON found.unit = u.unit),
-- kept AS (SELECT unnest(min(p, 5)) AS q FROM (SELECT *, h * 2147483648 + r AS p FROM placed) GROUP BY unit),
-- c AS (SELECT r, count(*) AS units FROM (SELECT q % 2147483648 AS r FROM kept) GROUP BY r)
-- SELECT k0, units FROM c JOIN o ON c.r = o.r)
