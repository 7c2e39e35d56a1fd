-- id: A40
-- verdict: answered
WITH x AS (SELECT user_id, day, amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day, product, amount) AS rn FROM events) SELECT AVG(amount) FROM x WHERE rn = 1
