-- id: B38
-- verdict: refused
-- error: UnsupportedSql
-- message: LIMIT that is not a whole number.
-- instead: SELECT region, COUNT(*) FROM events GROUP BY region LIMIT 10
SELECT region, COUNT(*) FROM events GROUP BY region LIMIT (SELECT COUNT(*) FROM users)
