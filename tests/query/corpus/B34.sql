-- id: B34
-- verdict: refused
-- error: UnsupportedSql
-- message: A join without a condition makes rows that are nobody's.
-- instead: SELECT AVG(amount), VARIANCE(amount) FROM events
SELECT CORR(a.amount, b.amount) FROM events a, events b
