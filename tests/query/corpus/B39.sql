-- id: B39
-- verdict: refused
-- error: UnsupportedSql
-- message: EXISTS that does not look for the same unit depends on the rows of everybody.
-- instead: SELECT COUNT(*) FROM events e WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id)
SELECT e.* FROM events e WHERE NOT EXISTS (SELECT 1 FROM users)
