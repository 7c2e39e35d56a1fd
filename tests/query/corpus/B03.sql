-- id: B03
-- verdict: refused
-- error: UnsupportedSql
-- message: GROUP BY the unit makes every group one person.
-- instead: SELECT AVG(n) FROM (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id) AS per_user
SELECT user_id, COUNT(*) FROM events GROUP BY user_id
