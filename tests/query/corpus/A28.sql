-- id: A28
-- verdict: answered
SELECT COUNT(DISTINCT product) FROM events
