-- id: B23
-- verdict: refused
-- error: UnsupportedSql
-- message: This aggregate (STRING_AGG) returns values of single persons.
-- instead: SELECT product, COUNT(*) FROM events GROUP BY product
SELECT STRING_AGG(product, ',') FROM events
