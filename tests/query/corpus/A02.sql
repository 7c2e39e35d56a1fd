-- id: A02
-- verdict: answered
SELECT COUNT(DISTINCT user_id) FROM events
