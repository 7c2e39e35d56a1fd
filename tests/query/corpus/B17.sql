-- id: B17
-- verdict: refused
-- error: UnsupportedSql
-- message: The function ERROR is not part of the language.
-- instead: SELECT COUNT(*) FROM events WHERE CASE WHEN region = 'R01' THEN 0 ELSE 1 END = 1
SELECT COUNT(*) FROM events WHERE CASE WHEN user_id = 1000123 THEN ERROR('x') ELSE 1 END = 1
