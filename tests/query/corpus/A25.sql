-- id: A25
-- verdict: answered
SELECT COUNT(*) FROM (SELECT user_id FROM events WHERE amount > 100 GROUP BY user_id HAVING COUNT(*) >= 3)
