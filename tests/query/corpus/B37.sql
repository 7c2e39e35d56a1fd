-- id: B37
-- verdict: refused
-- error: UnsupportedSql
-- message: Column 'user_id' outside an aggregate would show rows or values of single persons.
-- instead: SELECT region, COUNT(*) AS n FROM events GROUP BY region ORDER BY n LIMIT 1
SELECT COUNT(*) FROM events ORDER BY user_id LIMIT 1
