-- id: B29
-- verdict: refused
-- error: UnsupportedSql
-- message: 2 statements in one text.
-- instead: SELECT COUNT(*) FROM events
SELECT 1; DROP TABLE events
