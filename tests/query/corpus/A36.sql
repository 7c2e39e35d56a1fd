-- id: A36
-- verdict: answered
-- note: MIN(amount) is the value that 0.5% lie below, found privately: the extreme itself is one person's.
-- note: MAX(amount) is the value that 0.5% lie above, found privately: the extreme itself is one person's.
SELECT MIN(amount), MAX(amount) FROM events

-- bounded:
-- QUANTILE(amount, 0.005, 0.995)
--   add-remove: Linf 10 in each of the 1 groups of a unit under epsilon, Linf 10 in each of the 1 groups of a unit under rho
--   replace-one: Linf 10 in each of the 1 groups of a unit under epsilon, Linf 10 in each of the 1 groups of a unit under rho
-- WITH found AS MATERIALIZED (SELECT unit, ("c_amount" - (0)) AS leaf FROM (SELECT CASE WHEN s."c_amount" BETWEEN 0 AND 2048000 THEN TRY_CAST((s."c_amount" + 6755399441055744.0::DOUBLE) - 6755399441055744.0::DOUBLE AS BIGINT) WHEN s."c_amount" < 0 THEN 0 WHEN s."c_amount" <= 'inf'::DOUBLE THEN 2048000 END AS "c_amount", s.unit FROM (SELECT TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE AS "c_amount", CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events") AS s WHERE s.unit IS NOT NULL))
-- SELECT leaf, sum(coalesce(share, 1048576)) FROM found AS f LEFT JOIN (SELECT unit, weight * least(held, 10) // nullif(held, 0) AS share
-- FROM (SELECT *, 1048576::BIGINT AS weight
-- FROM (SELECT unit, count(*) AS n, count(leaf) AS held
-- FROM (SELECT l.* FROM found AS l SEMI JOIN (SELECT unit
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT * FROM found)
-- GROUP BY unit) WHERE n > 10) AS r ON l.unit = r.unit)
-- GROUP BY unit)) WHERE weight < 1048576 OR held > 10) AS p ON f.unit = p.unit
-- WHERE leaf IS NOT NULL GROUP BY leaf
