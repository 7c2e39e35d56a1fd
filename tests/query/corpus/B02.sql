-- id: B02
-- verdict: refused
-- error: UnsupportedSql
-- message: * would show rows or values of single persons.
-- instead: SELECT COUNT(*), SUM(amount) FROM events
SELECT * FROM events LIMIT 10
