-- id: B41
-- verdict: refused
-- error: UnsupportedSql
-- message: A set operation (UNION, EXCEPT, INTERSECT) of whole questions is not answered.
-- instead: SELECT COUNT(*) - 100000 FROM events
SELECT COUNT(*) FROM events EXCEPT SELECT 100000
