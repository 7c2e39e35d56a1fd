-- id: A31
-- verdict: answered
SELECT COUNT(*) FROM events WHERE user_id IN (SELECT user_id FROM users WHERE age_band = '18-24')
