-- id: A26
-- verdict: answered
WITH first_buy AS (SELECT user_id, MIN(day) AS d FROM events GROUP BY user_id) SELECT d, COUNT(*) FROM first_buy GROUP BY d
