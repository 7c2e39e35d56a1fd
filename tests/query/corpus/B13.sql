-- id: B13
-- verdict: refused
-- error: UnsupportedSql
-- message: TABLESAMPLE samples rows, not persons.
-- instead: SELECT COUNT(*) FROM events
SELECT COUNT(*) FROM events TABLESAMPLE 10 PERCENT
