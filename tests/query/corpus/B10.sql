-- id: B10
-- verdict: refused
-- error: UnsupportedSql
-- message: A sub-query that reads the row outside (a correlated one) compares each person with all others.
-- instead: SELECT region, COUNT(*) FILTER (WHERE amount > 100) FROM events GROUP BY region
SELECT e.region, (SELECT COUNT(*) FROM events x WHERE x.amount > e.amount) FROM events e
