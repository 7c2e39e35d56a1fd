-- id: B33
-- verdict: refused
-- error: UnsupportedSql
-- message: A window function (OVER) of persons' rows is not computed.
-- instead: SELECT day, SUM(amount) FROM events GROUP BY day ORDER BY day
SELECT SUM(amount) OVER (ORDER BY day) FROM events
