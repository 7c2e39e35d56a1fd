-- What analysts write and this version refuses. Above each statement: its name, the error, and a word of the refusal.

-- B01 | UnsupportedSql | * would show rows
SELECT * FROM events

-- B02 | UnsupportedSql | * would show rows
SELECT * FROM events LIMIT 10

-- B03 | UnsupportedSql | GROUP BY the unit
SELECT user_id, COUNT(*) FROM events GROUP BY user_id

-- B05 | UnsupportedSql | GROUP BY an expression
SELECT user_id % 1000 AS b, COUNT(*) FROM events GROUP BY 1

-- B06 | UnsupportedSql | expression
SELECT SUM(price * quantity) FROM orders

-- B07 | UnsupportedSql | MAX
SELECT MAX(amount) - MIN(amount) FROM events_unbounded

-- B08 | UnsupportedSql | join
SELECT COUNT(*) FROM events a JOIN events b ON a.product = b.product

-- B09 | UnsupportedSql | join
SELECT COUNT(*) FROM events a JOIN events b ON a.user_id = b.user_id AND a.day < b.day

-- B10 | UnsupportedSql | outside GROUP BY
SELECT e.region, (SELECT COUNT(*) FROM events x WHERE x.amount > e.amount) FROM events e

-- B11 | UnsupportedSql | sub-query
SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events)

-- B12 | UnsupportedSql | function
SELECT COUNT(*) FROM events WHERE RANDOM() < 0.1

-- B13 | UnsupportedSql | TABLESAMPLE
SELECT COUNT(*) FROM events TABLESAMPLE 10 PERCENT

-- B14 | UnsupportedSql | expression
SELECT COUNT(*) FROM events WHERE day > CURRENT_DATE - 7

-- B15 | UnsupportedSql | expression
SELECT SUM(1 / (amount - 42)) FROM events

-- B16 | UnsupportedSql | CAST
SELECT COUNT(*) FROM events WHERE CAST(product AS INT) > 5

-- B17 | UnsupportedSql | CASE
SELECT COUNT(*) FROM events WHERE CASE WHEN user_id = 1000123 THEN ERROR('x') ELSE 1 END = 1

-- B19 | UnknownName | user_id
SELECT COUNT(*) FROM events WHERE user_id = 1000123

-- B20 | UnsupportedSql | outside GROUP BY
SELECT region, amount, RANK() OVER (PARTITION BY region ORDER BY amount DESC) FROM events

-- B21 | UnsupportedSql | sub-query
SELECT AVG(x) FROM (SELECT amount - LAG(amount) OVER (ORDER BY day) AS x FROM events)

-- B22 | UnsupportedSql | expression
SELECT AVG(amount - AVG(amount) OVER (PARTITION BY region)) FROM events

-- B23 | UnsupportedSql | aggregate
SELECT STRING_AGG(product, ',') FROM events

-- B24 | UnsupportedSql | aggregate
SELECT LIST(amount) FROM events

-- B26 | UnsupportedSql | UNION
SELECT region FROM events UNION SELECT product FROM events

-- B27 | UnsupportedSql | DISTINCT
SELECT DISTINCT product FROM events

-- B28 | UnknownName | FROM a function
SELECT COUNT(*) FROM read_csv('/etc/passwd')

-- B29 | UnsupportedSql | 2 statements
SELECT 1; DROP TABLE events

-- B30 | UnsupportedSql | COPY
COPY (SELECT * FROM events) TO 'out.csv'

-- B31 | UnsupportedSql | CREATE
CREATE TABLE t AS SELECT * FROM events

-- B32 | UnsupportedSql | my_udf
SELECT my_udf(amount) FROM events

-- B33 | UnsupportedSql | OVER
SELECT SUM(amount) OVER (ORDER BY day) FROM events

-- B34 | UnsupportedSql | join
SELECT CORR(a.amount, b.amount) FROM events a, events b

-- B35 | UnsupportedSql | REGEXP
SELECT COUNT(*) FROM events WHERE regexp_matches(product, '(a+)+$')

-- B37 | UnknownName | user_id
SELECT COUNT(*) FROM events ORDER BY user_id LIMIT 1

-- B38 | UnsupportedSql | LIMIT
SELECT region, COUNT(*) FROM events GROUP BY region LIMIT (SELECT COUNT(*) FROM users)

-- B39 | UnsupportedSql | * would show rows
SELECT e.* FROM events e WHERE NOT EXISTS (SELECT 1 FROM users)

-- B40 | UnsupportedSql | join
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM events, r

-- B41 | UnsupportedSql | EXCEPT
SELECT COUNT(*) FROM events EXCEPT SELECT 100000

-- B42 | UnsupportedSql | GROUP BY an expression
SELECT SUM(amount) FROM events GROUP BY GROUPING SETS ((user_id), (region))

-- C01 not a query | UnsupportedSql | UPDATE
UPDATE events SET amount = 1

-- C02 not a query | UnsupportedSql | DELETE
DELETE FROM events

-- C03 not a query | UnsupportedSql | INSERT
INSERT INTO events VALUES (1)

-- C04 not a query | UnsupportedSql | DROP
DROP TABLE events

-- C05 not a query | UnsupportedSql | ALTER
ALTER TABLE events ADD x INT

-- C06 not a query | UnsupportedSql | ATTACH
ATTACH 'x.db'

-- C07 not a query | UnsupportedSql | PRAGMA
PRAGMA database_list

-- C08 not a query | UnsupportedSql | SET
SET threads = 1

-- C09 not a query | UnsupportedSql | statement
CALL f()

-- C10 not a query | UnsupportedSql | INSTALL
INSTALL httpfs

-- C11 not a query | UnsupportedSql | DESCRIBE
DESCRIBE events

-- C12 not a query | UnsupportedSql | SUMMARIZE
SUMMARIZE events

-- C13 not a query | UnsupportedSql | statement
EXPLAIN ANALYZE SELECT COUNT(*) FROM events

-- C14 not a query | UnsupportedSql | VALUES
VALUES (1)

-- C15 not a query | UnsupportedSql | TRANSACTION
BEGIN

-- C16 several | UnsupportedSql | 2 statements
SELECT COUNT(*) FROM events; SELECT COUNT(*) FROM users

-- C17 several | UnsupportedSql | 3 statements
SELECT COUNT(*) FROM events; SELECT 1; SELECT 2

-- C18 raw rows | UnsupportedSql | * would show rows
TABLE events

-- C19 raw rows | UnsupportedSql | * would show rows
FROM events

-- C20 raw rows | UnsupportedSql | without an aggregate
SELECT region FROM events GROUP BY region

-- C21 raw rows | UnsupportedSql | outside GROUP BY
SELECT region, COUNT(*) FROM events

-- C22 raw rows | UnsupportedSql | outside GROUP BY
SELECT amount FROM events

-- C23 raw rows | UnsupportedSql | outside GROUP BY
SELECT COUNT(*) FROM events ORDER BY amount

-- C24 raw rows | UnsupportedSql | outside GROUP BY
SELECT COUNT(*) FROM events HAVING amount > 3

-- C25 raw rows | UnsupportedSql | DISTINCT
SELECT DISTINCT COUNT(*) FROM events

-- C26 raw rows | UnsupportedSql | * would show rows
SELECT COUNT(events.*) FROM events

-- C27 unit | UnsupportedSql | the unit
SELECT user_id AS who, COUNT(*) FROM events GROUP BY who

-- C28 unit | UnsupportedSql | the unit
SELECT user_id, COUNT(*) FROM events GROUP BY 1

-- C29 unit | UnsupportedSql | the unit
SELECT COUNT(*) FROM events GROUP BY USER_ID

-- C30 unit | UnsupportedSql | the unit
SELECT COUNT(*) FROM events GROUP BY "User_Id"

-- C31 unit | UnsupportedSql | the unit
SELECT COUNT(*) FROM events GROUP BY events."USER_ID"

-- C32 unit | UnsupportedSql | the unit
SELECT e.user_id AS "U", COUNT(*) FROM events AS e GROUP BY "U"

-- C33 unit | UnsupportedSql | the unit
SELECT COUNT(*) FROM events GROUP BY region, user_id

-- C34 groups | UnsupportedSql | ALL
SELECT region, COUNT(*) FROM events GROUP BY ALL

-- C35 groups | UnsupportedSql | expression
SELECT COUNT(*) FROM events GROUP BY ROLLUP(region)

-- C36 groups | UnsupportedSql | TOTALS
SELECT COUNT(*) FROM events GROUP BY region WITH TOTALS

-- C37 groups | UnsupportedSql | expression
SELECT region, COUNT(*) FROM events GROUP BY 2

-- C38 window | UnsupportedSql | QUALIFY
SELECT COUNT(*) FROM events QUALIFY ROW_NUMBER() OVER () = 1

-- C39 window | UnsupportedSql | OVER
SELECT COUNT(*) FROM events WINDOW w AS (PARTITION BY region)

-- C40 rows | UnsupportedSql | TABLESAMPLE
SELECT COUNT(*) FROM events USING SAMPLE 10%

-- C41 rows | UnsupportedSql | Into
SELECT COUNT(*) INTO x FROM events

-- C42 tables | UnsupportedSql | join
SELECT COUNT(*) FROM events, users

-- C43 tables | UnsupportedSql | join
SELECT COUNT(*) FROM events NATURAL JOIN users

-- C44 tables | UnsupportedSql | VALUES
SELECT COUNT(*) FROM (VALUES (1)) t(x)

-- C45 tables | UnsupportedSql | UNNEST
SELECT COUNT(*) FROM UNNEST([1, 2])

-- C46 tables | UnsupportedSql | sub-query
SELECT COUNT(*) FROM (events)

-- C47 tables | UnsupportedSql | sub-query
(SELECT COUNT(*) FROM events)

-- C48 tables | UnsupportedSql | DB
SELECT COUNT(*) FROM main.events

-- C49 tables | UnsupportedSql | WITH
WITH x AS (SELECT 1) SELECT COUNT(*) FROM events

-- C50 tests | UnsupportedSql | LIKE
SELECT COUNT(*) FROM events WHERE region LIKE 'R%'

-- C51 tests | UnsupportedSql | ABS
SELECT COUNT(*) FROM events WHERE ABS(amount) > 3

-- C52 tests | UnsupportedSql | expression
SELECT COUNT(*) FROM events WHERE amount + 1 > 3

-- C53 tests | UnsupportedSql | NULL
SELECT COUNT(*) FROM events WHERE amount = NULL

-- C54 tests | UnsupportedSql | NULL
SELECT COUNT(*) FROM events WHERE amount IN (1, NULL)

-- C55 tests | UnsupportedSql | alone is not a test
SELECT COUNT(*) FROM events WHERE amount

-- C56 tests | UnsupportedSql | no declared order
SELECT COUNT(*) FROM events WHERE region > 'R01'

-- C57 tests | UnsupportedSql | no declared order
SELECT COUNT(*) FROM events WHERE product < 'a'

-- C58 tests | UnsupportedSql | SYMMETRIC
SELECT COUNT(*) FROM events WHERE amount BETWEEN SYMMETRIC 5 AND 1

-- C59 tests | UnsupportedSql | DATE
SELECT COUNT(*) FROM events WHERE day = DATE '2024-02-30'

-- C60 tests | UnsupportedSql | parameter
SELECT COUNT(*) FROM events WHERE amount = ?

-- C61 tests | UnsupportedSql | parameter
SELECT COUNT(*) FROM events WHERE amount = $1

-- C62 tests | UnsupportedSql | two kinds
SELECT COUNT(*) FROM events WHERE 1 = 'a'

-- C63 tests | UnsupportedSql | is compared with
SELECT COUNT(*) FROM events WHERE amount = 'a'

-- C64 tests | UnsupportedSql | is compared with
SELECT COUNT(*) FROM events WHERE product = 1

-- C65 tests | UnsupportedSql | is compared with
SELECT COUNT(*) FROM events WHERE day = 20240101

-- C66 tests | UnsupportedSql | comparison of
SELECT COUNT(*) FROM events WHERE amount = day

-- C67 aggregates | UnsupportedSql | SUM(DISTINCT ...)
SELECT SUM(DISTINCT amount) FROM events

-- C68 aggregates | UnsupportedSql | SUM of 'region'
SELECT SUM(region) FROM events

-- C69 aggregates | UnsupportedSql | AVG of 'day'
SELECT AVG(day) FROM events

-- C70 aggregates | UnsupportedSql | another column than the unit
SELECT COUNT(DISTINCT region) FROM events

-- C71 aggregates | UnsupportedSql | each row is one person
SELECT COUNT(DISTINCT price) FROM orders

-- C72 aggregates | UnsupportedSql | FILTER
SELECT COUNT(*) FILTER (WHERE amount > 3) FROM events

-- C73 aggregates | UnsupportedSql | MEDIAN
SELECT MEDIAN(amount) FROM events

-- C74 aggregates | UnsupportedSql | quantile
SELECT QUANTILE_CONT(amount, 0.5) FROM events

-- C75 aggregates | UnsupportedSql | STDDEV
SELECT STDDEV(amount) FROM events

-- C76 aggregates | UnsupportedSql | expression
SELECT SUM(amount + 1) FROM events

-- C77 outputs | UnsupportedSql | ROUND
SELECT ROUND(COUNT(*)) FROM events

-- C78 outputs | UnsupportedSql | expression
SELECT COUNT(*) % 2 FROM events

-- C79 outputs | UnsupportedSql | A key or a text where a number is needed
SELECT COUNT(*) + region FROM events GROUP BY region

-- C80 outputs | UnsupportedSql | LIMIT
SELECT COUNT(*) FROM events LIMIT 1.5

-- C81 outputs | UnsupportedSql | LIMIT
SELECT COUNT(*) FROM events LIMIT -1

-- C82 outputs | UnsupportedSql | OFFSET
SELECT COUNT(*) FROM events OFFSET 'x'

-- C83 outputs | UnsupportedSql | ORDER BY 2
SELECT COUNT(*) FROM events ORDER BY 2

-- C84 outputs | UnsupportedSql | GROUP BY 0
SELECT COUNT(*) FROM events GROUP BY 0

-- D01 | UnknownName | nosuch
SELECT COUNT(*) FROM nosuch

-- D02 | UnknownName | wage
SELECT SUM(wage) FROM events

-- D03 | UnknownName | R99
SELECT COUNT(*) FROM events WHERE region = 'R99'

-- D04 | UnknownName | 'x'
SELECT COUNT(x.region) FROM events

-- D05 | UnknownName | without FROM
SELECT COUNT(*)

-- D06 | MissingDeclaration | bounds
SELECT SUM(product) FROM events

-- D07 | MissingDeclaration | values declared
SELECT product, COUNT(*) FROM events GROUP BY product

-- E01 places | UnsupportedSql | GROUP BY True
SELECT COUNT(*) FROM events GROUP BY TRUE

-- E02 places | UnsupportedSql | ORDER BY True
SELECT COUNT(*) FROM events ORDER BY TRUE

-- E03 kinds | UnsupportedSql | where a number is needed
SELECT COUNT(*) FROM events HAVING COUNT(*) > 'a'

-- E04 kinds | UnsupportedSql | where a number is needed
SELECT COUNT(*) FROM events HAVING COUNT(*) BETWEEN 'a' AND 'b'

-- E05 kinds | UnsupportedSql | no declared order
SELECT region AS s, COUNT(*) FROM events GROUP BY region HAVING s < 'a'

-- E06 kinds | UnsupportedSql | where a number is needed
SELECT region, COUNT(*) FROM events GROUP BY region HAVING (region) < 'a'

-- E07 tables | UnknownName | 'foo'
SELECT COUNT(DISTINCT foo.user_id) FROM events

-- E08 tables | UnknownName | 'foo'
SELECT foo.region, COUNT(*) FROM events GROUP BY region

-- E09 tables | UnsupportedSql | COLUMNS
SELECT SUM(age) FROM events AS e(age)
