-- id: B27
-- verdict: refused
-- error: UnsupportedSql
-- message: DISTINCT shows values that occur, which is itself private.
-- instead: SELECT product, COUNT(*) FROM events GROUP BY product
SELECT DISTINCT product FROM events
