-- id: B31
-- verdict: refused
-- error: UnsupportedSql
-- message: The statement CREATE is not a question about the data.
-- instead: SELECT COUNT(*) FROM events
CREATE TABLE t AS SELECT * FROM events
