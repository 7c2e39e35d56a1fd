-- id: B15
-- verdict: refused
-- error: UnsupportedSql
-- message: A division by an expression that can be zero on some row.
-- instead: SELECT SUM(1 / GREATEST(amount - 42, 1)) FROM events
SELECT SUM(1 / (amount - 42)) FROM events
