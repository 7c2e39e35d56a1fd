-- id: A10
-- verdict: answered
SELECT day, COUNT(DISTINCT user_id) FROM events GROUP BY day
