-- id: A04
-- verdict: answered
SELECT AVG(amount) FROM events
