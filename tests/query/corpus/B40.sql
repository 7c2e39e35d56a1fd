-- id: B40
-- verdict: refused
-- error: UnsupportedSql
-- message: WITH RECURSIVE has no bound on its rows.
-- instead: SELECT COUNT(*) FROM events
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM events, r
