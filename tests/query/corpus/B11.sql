-- id: B11
-- verdict: answered
-- scalar: 43.77
SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events)

-- bounded:
-- COUNT(*)
--   add-remove: L1 10 under epsilon, L2 sqrt(100) under rho
--   replace-one: L1 10 under epsilon, L2 sqrt(100) under rho
-- SELECT coalesce(sum(least(n, 10)), 0) * 1
-- FROM (SELECT unit, count(*) AS n
-- FROM (SELECT s.unit FROM (SELECT CAST("user_id" AS VARCHAR) COLLATE "C" AS unit FROM "events" WHERE ((TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE > 179282.5::DOUBLE AND TRY_CAST(TRY("amount") AS DOUBLE) * 4096.0::DOUBLE <= 'inf'::DOUBLE))) AS s WHERE s.unit IS NOT NULL)
-- GROUP BY unit)
