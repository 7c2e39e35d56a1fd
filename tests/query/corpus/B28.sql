-- id: B28
-- verdict: refused
-- error: UnknownName
-- message: FROM a function.
-- instead: SELECT COUNT(*) FROM events
SELECT COUNT(*) FROM read_csv('/etc/passwd')
