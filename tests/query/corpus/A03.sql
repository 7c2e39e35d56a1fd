-- id: A03
-- verdict: answered
SELECT SUM(amount) FROM events
