-- id: A24
-- verdict: answered
WITH per_user AS (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id) SELECT n, COUNT(*) FROM per_user GROUP BY n ORDER BY n
