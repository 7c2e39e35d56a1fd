-- id: A16
-- verdict: answered
SELECT SUM(CASE WHEN amount > 50 THEN 1 ELSE 0 END) FROM events
