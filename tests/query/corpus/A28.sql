-- id: A28
-- verdict: answered
SELECT COUNT(DISTINCT product) FROM events

-- bounded:
-- COUNT(DISTINCT product)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT count(DISTINCT v0) * 1
-- FROM (SELECT *
-- FROM (WITH found AS MATERIALIZED (SELECT unit, v0
-- FROM (SELECT unit, v0
-- FROM (SELECT unit, "c_product" AS v0 FROM (SELECT s."c_product" AS "c_product", s.unit FROM (SELECT CAST("product" AS VARCHAR) COLLATE "C" AS "c_product", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL))
-- GROUP BY unit, v0) WHERE v0 IS NOT NULL)
-- SELECT found.*, ((a * y + b) % 2147483647) >> 7 AS h FROM found JOIN (SELECT v0, TRY_CAST('0x' || substr(m, 1, 8) AS BIGINT) AS a, TRY_CAST('0x' || substr(m, 9, 8) AS BIGINT) AS b FROM (SELECT v0, md5('<sampling key>' || '|' || coalesce(CAST(v0 AS VARCHAR), 'N')) AS m FROM (SELECT v0 FROM found GROUP BY v0))) AS o ON found.v0 IS NOT DISTINCT FROM o.v0 JOIN (SELECT unit, ((1025440144 + 3379553291 * (id & 4194303) + 4170336341 * ((id >> 22) & 4194303) + 2733530035 * ((id >> 44) & 4194303)) % 2147483647) AS y FROM (SELECT unit, coalesce(CASE WHEN regexp_full_match(unit, '0|-?[1-9][0-9]{0,18}') THEN TRY_CAST(unit AS BIGINT) END, TRY_CAST('0x' || substr(md5(unit), 1, 15) AS BIGINT)) AS id FROM (SELECT unit FROM found GROUP BY unit))) AS u ON found.unit = u.unit) QUALIFY row_number() OVER (PARTITION BY unit ORDER BY h, v0) <= 10)
