-- id: B19
-- verdict: answered
-- note: WHERE names a value of user_id: the answer is about very few persons, so it is mostly noise.
SELECT COUNT(*) FROM events WHERE user_id = 1000123
