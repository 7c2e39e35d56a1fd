-- id: A23
-- verdict: answered
WITH per_user AS (SELECT user_id, SUM(amount) AS total FROM events GROUP BY user_id) SELECT AVG(total) FROM per_user
