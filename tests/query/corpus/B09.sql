-- id: B09
-- verdict: refused
-- error: UnsupportedSql
-- message: A join has several rows a unit on both sides, so a person's rows multiply.
-- instead: SELECT COUNT(*) FROM events a JOIN (SELECT user_id, MAX(day) AS last FROM events GROUP BY user_id) AS one ON one.user_id = a.user_id WHERE a.day < one.last
SELECT COUNT(*) FROM events a JOIN events b ON a.user_id = b.user_id AND a.day < b.day
