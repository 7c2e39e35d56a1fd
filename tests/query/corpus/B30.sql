-- id: B30
-- verdict: refused
-- error: UnsupportedSql
-- message: The statement COPY is not a question about the data.
-- instead: SELECT COUNT(*) FROM events
COPY (SELECT * FROM events) TO 'out.csv'
