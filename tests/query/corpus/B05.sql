-- id: B05
-- verdict: refused
-- error: UnsupportedSql
-- message: user_id names single persons, and nothing may be computed from it.
-- instead: SELECT region, COUNT(DISTINCT user_id) FROM events GROUP BY region
SELECT user_id % 1000 AS b, COUNT(*) FROM events GROUP BY 1
