-- id: B21
-- verdict: refused
-- error: UnsupportedSql
-- message: A window function (LAG OVER) reaches across units, so one person changes the values of others.
-- instead: SELECT AVG(amount) FROM (SELECT user_id, amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS rn FROM events) AS x WHERE rn = 1
SELECT AVG(x) FROM (SELECT amount - LAG(amount) OVER (ORDER BY day) AS x FROM events)
