-- id: B24
-- verdict: refused
-- error: UnsupportedSql
-- message: This aggregate (ARRAY_AGG) returns values of single persons.
-- instead: SELECT WIDTH_BUCKET(amount, 0, 500, 20) AS b, COUNT(*) FROM events GROUP BY b
SELECT LIST(amount) FROM events
