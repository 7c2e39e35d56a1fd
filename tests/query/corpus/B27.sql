-- id: B27
-- verdict: answered
-- note: A value is listed if enough units have it: their noisy number passes a threshold.
SELECT DISTINCT product FROM events

-- bounded:
-- COUNT(DISTINCT unit)
--   add-remove: L1 5 under epsilon, L2 sqrt(5) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(10) under rho
-- SELECT k0, units * 1
-- FROM (WITH found AS MATERIALIZED (SELECT unit, k0
-- FROM (SELECT * FROM (SELECT unit, "c_product" AS k0 FROM (SELECT s."c_product" AS "c_product", s.unit FROM (SELECT CAST("product" AS VARCHAR) COLLATE "C" AS "c_product", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL)) WHERE k0 IS NOT NULL)
-- GROUP BY unit, k0),
-- o AS MATERIALIZED (SELECT *, row_number() OVER (ORDER BY k0 NULLS FIRST) AS r FROM (SELECT k0, TRY_CAST('0x' || substr(m, 1, 8) AS BIGINT) AS a, TRY_CAST('0x' || substr(m, 9, 8) AS BIGINT) AS b FROM (SELECT k0, md5('<sampling key>' || '|' || coalesce(CAST(k0 AS VARCHAR), 'N')) AS m FROM (SELECT k0 FROM found GROUP BY k0)))),
-- placed AS (SELECT found.unit, ((((a * y + b) % 2147483647) >> 7) * 2147483648 + r) * 256 + 0 AS p
-- FROM found JOIN o ON found.k0 IS NOT DISTINCT FROM o.k0 JOIN (SELECT unit, ((1025440144 + 3379553291 * (id & 4194303) + 4170336341 * ((id >> 22) & 4194303) + 2733530035 * ((id >> 44) & 4194303)) % 2147483647) AS y FROM (SELECT unit, coalesce(CASE WHEN regexp_full_match(unit, '0|-?[1-9][0-9]{0,18}') THEN TRY_CAST(unit AS BIGINT) END, TRY_CAST('0x' || substr(md5(unit), 1, 15) AS BIGINT)) AS id FROM (SELECT unit FROM found GROUP BY unit))) AS u ON found.unit = u.unit),
-- kept AS (SELECT unnest(min(p, 5)) AS p FROM placed GROUP BY unit),
-- c AS (SELECT (p >> 8) & 2147483647 AS r, count(*) AS units FROM kept GROUP BY r)
-- SELECT k0, units FROM c JOIN o ON c.r = o.r)
