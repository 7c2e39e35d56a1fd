-- id: A18
-- verdict: answered
SELECT SUM(LEAST(amount, 100)) FROM events
