-- id: B20
-- verdict: refused
-- error: UnsupportedSql
-- message: A window function (OVER) of persons' rows is not computed.
-- instead: SELECT region, AVG(amount) AS m FROM events GROUP BY region ORDER BY m DESC
SELECT region, amount, RANK() OVER (PARTITION BY region ORDER BY amount DESC) FROM events
