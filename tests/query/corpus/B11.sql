-- id: B11
-- verdict: answered
-- scalar: 43.77
SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events)
