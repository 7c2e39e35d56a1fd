-- id: B12
-- verdict: refused
-- error: UnsupportedSql
-- message: RANDOM() is not the same when the answer is checked.
-- instead: SELECT COUNT(*) FROM events
SELECT COUNT(*) FROM events WHERE RANDOM() < 0.1
