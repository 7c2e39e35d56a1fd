-- id: A05
-- verdict: answered
SELECT SUM(amount), AVG(amount), COUNT(*), COUNT(amount) FROM events
