-- id: B22
-- verdict: refused
-- error: UnsupportedSql
-- message: A window function (OVER) of persons' rows is not computed.
-- instead: SELECT region, VARIANCE(amount) FROM events GROUP BY region
SELECT AVG(amount - AVG(amount) OVER (PARTITION BY region)) FROM events
