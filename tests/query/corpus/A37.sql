-- id: A37
-- verdict: answered
SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id AND u.age_band = '65+')
