-- id: A20
-- verdict: answered
SELECT u.age_band, AVG(e.amount) FROM events e JOIN users u ON e.user_id = u.user_id GROUP BY u.age_band
