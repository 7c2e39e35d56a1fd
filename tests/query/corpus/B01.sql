-- id: B01
-- verdict: refused
-- error: UnsupportedSql
-- message: * would show rows or values of single persons.
-- instead: SELECT region, COUNT(*), AVG(amount) FROM events GROUP BY region
SELECT * FROM events
