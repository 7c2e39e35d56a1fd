-- id: A12
-- verdict: answered
SELECT region, QUANTILE_CONT(amount, 0.5), QUANTILE_CONT(amount, 0.9) FROM events GROUP BY region
