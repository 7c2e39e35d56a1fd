-- What is refused beyond the corpus. Above each statement: its name, the error, and a word of the refusal.

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

-- C15 not a query | UnsupportedSql | The statement BEGIN
BEGIN

-- C16 several | UnsupportedSql | 2 statements
SELECT COUNT(*) FROM events; SELECT COUNT(*) FROM users

-- C17 several | UnsupportedSql | 3 statements
SELECT COUNT(*) FROM events; SELECT 1; SELECT 2

-- C18 raw rows | UnsupportedSql | * would show rows
TABLE events

-- C19 raw rows | UnsupportedSql | * would show rows
FROM events

-- C20 raw rows | UnsupportedSql | declared list is free
SELECT region FROM events GROUP BY region

-- C21 raw rows | UnsupportedSql | outside GROUP BY
SELECT region, COUNT(*) FROM events

-- C22 raw rows | UnsupportedSql | A SELECT without an aggregate would show
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

-- C36 groups | UnsupportedSql | TOTALS
SELECT COUNT(*) FROM events GROUP BY region WITH TOTALS

-- C37 groups | UnsupportedSql | An aggregate in GROUP BY
SELECT region, COUNT(*) FROM events GROUP BY 2

-- C38 window | UnsupportedSql | QUALIFY
SELECT COUNT(*) FROM events QUALIFY ROW_NUMBER() OVER () = 1

-- C39 window | UnsupportedSql | OVER
SELECT COUNT(*) FROM events WINDOW w AS (PARTITION BY region)

-- C40 rows | UnsupportedSql | TABLESAMPLE
SELECT COUNT(*) FROM events USING SAMPLE 10%

-- C41 rows | UnsupportedSql | INTO x is not
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

-- C48 tables | UnsupportedSql | information_schema in information_schema.events is not
SELECT COUNT(*) FROM information_schema.events

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

-- C66 tests | UnsupportedSql | 'amount' is compared with another kind of
SELECT COUNT(*) FROM events WHERE amount = day

-- C67 aggregates | UnsupportedSql | SUM(DISTINCT ...)
SELECT SUM(DISTINCT amount) FROM events

-- C68 aggregates | UnsupportedSql | SUM of 'region'
SELECT SUM(region) FROM events

-- C69 aggregates | UnsupportedSql | AVG of 'day'
SELECT AVG(day) FROM events

-- C78 outputs | UnsupportedSql | COUNT(*) % 2
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

-- E01 places | UnsupportedSql | GROUP BY TRUE
SELECT COUNT(*) FROM events GROUP BY TRUE

-- E02 places | UnsupportedSql | ORDER BY TRUE
SELECT COUNT(*) FROM events ORDER BY TRUE

-- E03 kinds | UnsupportedSql | An expression is compared with 'a'
SELECT COUNT(*) FROM events HAVING COUNT(*) > 'a'

-- E04 kinds | UnsupportedSql | An expression is compared with 'a'
SELECT COUNT(*) FROM events HAVING COUNT(*) BETWEEN 'a' AND 'b'

-- E05 kinds | UnsupportedSql | no declared order
SELECT region AS s, COUNT(*) FROM events GROUP BY region HAVING s < 'a'

-- E06 kinds | UnsupportedSql | An order comparison (<) on a value,
SELECT region, COUNT(*) FROM events GROUP BY region HAVING (region) < 'a'

-- E07 tables | UnknownName | 'foo'
SELECT COUNT(DISTINCT foo.user_id) FROM events

-- E08 tables | UnknownName | 'foo'
SELECT foo.region, COUNT(*) FROM events GROUP BY region

-- E09 tables | UnsupportedSql | An alias with a list of columns
SELECT SUM(age) FROM events AS e(age)

-- F01 division | UnsupportedSql | A division by an expression that can
SELECT SUM(amount / age) FROM (SELECT user_id, amount, age - 15 AS age FROM events)

-- F02 division | UnsupportedSql | A division by an expression that can
SELECT SUM(amount / 0) FROM events

-- F03 numbers | UnsupportedSql | MOD by something else than a positive
SELECT SUM(amount % -3) FROM events

-- F04 numbers | UnsupportedSql | MOD by something else than a positive
SELECT SUM(amount % age) FROM events

-- F05 numbers | UnsupportedSql | This function (SQRT) is not part of
SELECT SUM(SQRT(amount)) FROM events

-- F06 numbers | UnsupportedSql | A power that is not a whole
SELECT SUM(amount ** 9) FROM events

-- F07 numbers | UnsupportedSql | A power that is not a whole
SELECT SUM(amount ** age) FROM events

-- F08 numbers | UnsupportedSql | An expression whose result may have more
SELECT SUM(FLOOR(age * 1e30) + amount) FROM events

-- F09 numbers | UnsupportedSql | An expression whose result may have more
SELECT SUM(TRUNC(age ** 4 * 1e30)) FROM events

-- F10 numbers | UnsupportedSql | ROUND to digits that is not a
SELECT SUM(ROUND(amount, age)) FROM events

-- F11 numbers | UnsupportedSql | NULL where a value is needed
SELECT SUM(NULL) FROM events

-- F12 numbers | UnsupportedSql | A choice among nothing but NULL
SELECT SUM(CASE WHEN smoker THEN NULL END) FROM events

-- F13 numbers | UnsupportedSql | A choice among values of different kinds.
SELECT SUM(CASE WHEN smoker THEN 1 ELSE 'a' END) FROM events

-- F14 numbers | UnsupportedSql | A choice among values of different kinds.
SELECT SUM(COALESCE(amount, day)) FROM events

-- F15 numbers | UnsupportedSql | SUM of 'region', which is declared as
SELECT SUM(region) FROM events

-- F16 numbers | UnsupportedSql | A date plus a number that is
SELECT SUM(amount + day) FROM events

-- F17 numbers | UnsupportedSql | LEAST or GREATEST of something else than
SELECT SUM(LEAST(region, 3)) FROM events

-- F18 numbers | UnsupportedSql | // of amount, no whole number.
SELECT SUM(amount // 2) FROM events

-- F19 numbers | UnsupportedSql | WIDTH_BUCKET without constant bounds
SELECT SUM(WIDTH_BUCKET(amount, 0, age, 5)) FROM events

-- F20 numbers | UnsupportedSql | WIDTH_BUCKET without constant bounds
SELECT SUM(WIDTH_BUCKET(amount, 5, 0, 5)) FROM events

-- F21 numbers | UnsupportedSql | amount & 1 is not part of the
SELECT SUM(amount & 1) FROM events

-- F22 casts | UnsupportedSql | A CAST of product to INT: one
SELECT SUM(CAST(product AS INTEGER)) FROM events

-- F23 casts | UnsupportedSql | A CAST of region to INT: one
SELECT SUM(CAST(region AS INTEGER)) FROM events

-- F24 casts | UnsupportedSql | A CAST to DECIMAL(3, 2)
SELECT SUM(amount::DECIMAL(3, 2)) FROM events

-- F25 casts | UnsupportedSql | A CAST of product to INT: one
SELECT SUM(TRY_CAST(product AS INTEGER)) FROM events

-- F26 casts | UnsupportedSql | This function (TRY) is not part of
SELECT SUM(TRY(amount)) FROM events

-- F27 casts | UnsupportedSql | A CAST to VARCHAR of
SELECT COUNT(amount::VARCHAR) FROM events

-- F28 dates | UnsupportedSql | The part HOUR of a date
SELECT SUM(EXTRACT(hour FROM day)) FROM events

-- F29 dates | UnsupportedSql | DATE_TRUNC to 'DECADE'
SELECT COUNT(DATE_TRUNC('decade', day)) FROM events

-- F30 dates | UnsupportedSql | Months or years added to a column:
SELECT COUNT(day + INTERVAL 1 MONTH) FROM events

-- F31 dates | UnsupportedSql | An INTERVAL that is no whole number
SELECT COUNT(day + INTERVAL 1 HOUR) FROM events

-- F32 dates | UnsupportedSql | A date plus a number that is
SELECT COUNT(day + 0.5) FROM events

-- F33 dates | UnsupportedSql | DATE_DIFF in 'HOUR'
SELECT COUNT(DATE_DIFF('hour', day, day)) FROM events

-- F34 dates | UnsupportedSql | The time of day (LOCALTIME) is
SELECT COUNT(*) FROM events WHERE LOCALTIME > day

-- F35 dates | UnsupportedSql | The time of day (CURRENT_TIME) is
SELECT COUNT(*) FROM events WHERE day > CURRENT_TIME

-- F36 dates | UnsupportedSql | amount where a date is needed
SELECT COUNT(YEAR(amount)) FROM events

-- F37 dates | UnsupportedSql | The directive %c in a format
SELECT COUNT(strftime(day, '%c')) FROM events

-- F38 dates | UnsupportedSql | A date that may lie beyond the
SELECT COUNT(day + 3000000) FROM events

-- F39 texts | UnsupportedSql | product where a text with declared values
SELECT COUNT(REVERSE(product)) FROM events

-- F40 texts | UnsupportedSql | product where a text with declared values
SELECT COUNT(product || 'x') FROM events

-- F41 texts | UnsupportedSql | product where a text with declared values
SELECT COUNT(region || product) FROM events

-- F42 texts | UnsupportedSql | product where a text with declared values
SELECT COUNT(*) FROM events WHERE RIGHT(product, 1) = 'a'

-- F43 texts | UnsupportedSql | A pattern or a text that is
SELECT COUNT(*) FROM events WHERE product LIKE region

-- F44 texts | UnsupportedSql | region LIKE 'a!%' ESCAPE '!' is not
SELECT COUNT(*) FROM events WHERE region LIKE 'a!%' ESCAPE '!'

-- F45 texts | UnsupportedSql | A regular expression with groups, or with
SELECT COUNT(*) FROM events WHERE regexp_matches(region, '(a|b)*')

-- F46 texts | UnsupportedSql | A regular expression with groups, or with
SELECT COUNT(*) FROM events WHERE regexp_matches(region, 'a?a?a?aaa')

-- F47 texts | UnknownName | 'region' has no declared value 'r01'
SELECT COUNT(*) FROM events WHERE UPPER(region) = 'r01'

-- F48 texts | UnsupportedSql | A key or value of texts of
SELECT SUBSTR(region, 1, 0), COUNT(*) FROM events GROUP BY 1

-- F49 texts | UnsupportedSql | A Text column compared with something else
SELECT COUNT(*) FROM events WHERE product = region

-- F50 texts | UnsupportedSql | A choice among values of different kinds.
SELECT CASE WHEN smoker THEN product ELSE region END, COUNT(*) FROM events GROUP BY 1

-- F51 texts | UnsupportedSql | This function (MD5) is not part of
SELECT COUNT(md5(product)) FROM events

-- G01 unit | UnsupportedSql | user_id names single persons, and nothing may
SELECT UPPER(user_id), COUNT(*) FROM events GROUP BY 1

-- G02 unit | UnsupportedSql | user_id names single persons, and nothing may
SELECT COUNT(DISTINCT user_id || 'x') FROM events

-- G03 unit | UnsupportedSql | An order comparison (<) on 'user_id', whose
SELECT COUNT(*) FROM events WHERE user_id < 'p5'

-- G04 unit | UnsupportedSql | user_id names single persons, and nothing may
SELECT COALESCE(user_id, 'x'), COUNT(*) FROM events GROUP BY 1

-- G05 unit | UnsupportedSql | user_id names single persons, and nothing may
SELECT MIN(user_id) FROM events

-- G06 unit | UnsupportedSql | GROUP BY the unit makes every group
SELECT region, user_id, COUNT(*) FROM events GROUP BY CUBE(region, user_id)

-- G07 unit | UnsupportedSql | This function (MD5) is not part of
SELECT md5(user_id), COUNT(*) FROM events GROUP BY 1

-- G08 unit | UnsupportedSql | user_id names single persons, and nothing may
SELECT u, COUNT(*) FROM (SELECT LOWER(user_id) AS u FROM events) GROUP BY u

-- G09 unit | UnsupportedSql | user_id names single persons, and nothing may
SELECT COUNT(*) FROM (SELECT user_id FROM events GROUP BY user_id) WHERE user_id = 'p1'

-- G10 unit | UnsupportedSql | user_id names single persons
SELECT COUNT(DISTINCT CASE WHEN smoker THEN user_id ELSE 'x' END) FROM events

-- G11 unit | UnsupportedSql | GROUP BY the unit makes every group
SELECT u, COUNT(*) FROM (SELECT user_id AS u FROM events) GROUP BY u

-- H02 keys | MissingDeclaration | GROUP BY a key that may have
SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM events_unbounded GROUP BY user_id) GROUP BY n

-- H03 keys | UnsupportedSql | ROLLUP, CUBE or GROUPING SETS adds up
SELECT region, MEDIAN(amount) FROM events GROUP BY ROLLUP(region)

-- H04 keys | UnsupportedSql | ROLLUP, CUBE or GROUPING SETS adds up
SELECT product, COUNT(*) FROM events GROUP BY ROLLUP(product)

-- H05 keys | UnsupportedSql | ROLLUP, CUBE or GROUPING SETS adds up
SELECT region, COUNT(DISTINCT user_id) FROM events GROUP BY CUBE(region, smoker)

-- H06 keys | UnsupportedSql | CUBE of more than 6 keys
SELECT COUNT(*) FROM events GROUP BY CUBE(region, smoker, age, day, product, amount, region)

-- H07 keys | UnsupportedSql | GROUP BY a constant
SELECT 'a', COUNT(*) FROM events GROUP BY 1

-- H08 keys | UnsupportedSql | An aggregate in GROUP BY
SELECT COUNT(*) FROM events GROUP BY COUNT(*)

-- H10 keys | UnsupportedSql | product where a text with declared values
SELECT product, COUNT(*) FROM events GROUP BY REVERSE(product)

-- J01 joins | UnsupportedSql | A join has several rows a unit
SELECT COUNT(*) FROM events a JOIN events b ON a.user_id = b.user_id

-- J02 joins | UnsupportedSql | A join has several rows a unit
SELECT COUNT(*) FROM events u LEFT JOIN events e ON u.user_id = e.user_id

-- J03 joins | UnsupportedSql | A join that is not on the
SELECT COUNT(*) FROM events e JOIN users u ON e.day = u.born

-- J04 joins | UnsupportedSql | A join of 'events' and 'orders', which
SELECT COUNT(*) FROM events e JOIN orders o ON e.amount = o.price

-- J05 joins | UnsupportedSql | A FULL join makes rows that are
SELECT COUNT(*) FROM events e FULL JOIN users u ON e.user_id = u.user_id

-- J06 joins | UnsupportedSql | A CROSS join makes rows that are
SELECT COUNT(*) FROM events e CROSS JOIN users u

-- J07 joins | UnsupportedSql | A ASOF join makes rows that are
SELECT COUNT(*) FROM events e ASOF JOIN users u USING (user_id)

-- J08 joins | UnsupportedSql | A join to a public table on
SELECT COUNT(*) FROM events e JOIN products p ON e.age > p.size

-- J09 joins | UnsupportedSql | A join to a public table on
SELECT COUNT(*) FROM events e JOIN products p ON e.product = p.product AND e.age = p.size

-- J10 joins | UnsupportedSql | A join of columns of different types
SELECT COUNT(*) FROM events e JOIN products p ON e.region = p.product

-- J11 joins | UnsupportedSql | A join of columns of different types
SELECT COUNT(*) FROM events e JOIN products p ON e.product = p.size

-- J12 joins | UnsupportedSql | A join that starts from public tables
SELECT COUNT(*) FROM products p LEFT JOIN events e ON e.product = p.product

-- J13 joins | UnsupportedSql | A question about public tables alone
SELECT COUNT(*) FROM products

-- J14 joins | UnsupportedSql | A join that starts from public tables
SELECT COUNT(*) FROM products p JOIN products q ON p.product = q.product

-- J15 joins | UnsupportedSql | A join to a sub-query of a
SELECT COUNT(*) FROM events e JOIN (SELECT product FROM products WHERE size > 3) p ON e.product = p.product

-- J17 joins | UnsupportedSql | A join has several rows a unit
SELECT COUNT(*) FROM events JOIN events USING (user_id)

-- J18 joins | UnsupportedSql | A join that is not on the
SELECT COUNT(*) FROM events e JOIN users u ON e.user_id = u.user_id OR e.day = u.born

-- J19 joins | UnsupportedSql | A join of 'events' and 'days', which
SELECT COUNT(*) FROM events e JOIN days d ON e.user_id = d.who

-- J20 joins | UnsupportedSql | A join to an expression of a
SELECT COUNT(*) FROM events e JOIN products p ON e.product = UPPER(p.product)

-- J21 joins | UnsupportedSql | A SEMI or ANTI join on more
SELECT COUNT(*) FROM events e SEMI JOIN users u ON e.user_id = u.user_id AND u.age_band = 'a'

-- J22 joins | UnsupportedSql | LATERAL is not part of the language
SELECT COUNT(*) FROM events e JOIN LATERAL (SELECT 1) x ON TRUE

-- S01 sub-queries | UnsupportedSql | A sub-query that aggregates over units is
SELECT MAX(n) FROM (SELECT region, COUNT(*) AS n FROM events GROUP BY region)

-- S02 sub-queries | UnsupportedSql | A sub-query that aggregates over units is
SELECT COUNT(*) FROM (SELECT DISTINCT region FROM events)

-- S03 sub-queries | UnsupportedSql | LIMIT in a sub-query depends on the
SELECT COUNT(*) FROM (SELECT user_id, amount FROM events LIMIT 5)

-- S04 sub-queries | UnsupportedSql | LIMIT in a sub-query depends
SELECT COUNT(*) FROM (SELECT user_id, amount FROM events ORDER BY amount LIMIT 5)

-- S05 sub-queries | UnsupportedSql | A set operation (UNION, EXCEPT, INTERSECT) of
SELECT COUNT(*) FROM (SELECT user_id, amount FROM events UNION SELECT user_id, amount FROM events)

-- S06 sub-queries | UnsupportedSql | A set operation (UNION, EXCEPT, INTERSECT) of
SELECT COUNT(*) FROM (SELECT user_id, amount FROM events EXCEPT SELECT user_id, amount FROM events)

-- S07 sub-queries | UnsupportedSql | UNION ALL whose columns do not match
SELECT COUNT(*) FROM (SELECT user_id, amount FROM events UNION ALL SELECT amount, user_id FROM events)

-- S08 sub-queries | UnsupportedSql | UNION ALL of tables that are not
SELECT COUNT(*) FROM (SELECT price FROM orders UNION ALL SELECT amount FROM events)

-- S09 sub-queries | UnsupportedSql | A choice among values of different kinds.
SELECT COUNT(*) FROM (SELECT user_id, amount FROM events UNION ALL SELECT user_id, region FROM events)

-- S10 sub-queries | UnsupportedSql | MEDIAN of one unit's rows is not
SELECT COUNT(*) FROM (SELECT user_id, MEDIAN(amount) AS m FROM events GROUP BY user_id)

-- S11 sub-queries | UnsupportedSql | Column 'amount' outside GROUP BY in a
SELECT COUNT(*) FROM (SELECT user_id, amount FROM events GROUP BY user_id)

-- S12 sub-queries | UnsupportedSql | MIN, MAX or ANY_VALUE of a text
SELECT COUNT(*) FROM (SELECT user_id, MIN(product) AS m FROM events GROUP BY user_id)

-- S13 sub-queries | MissingDeclaration | AVG of total has no bound: no
SELECT AVG(total) FROM (SELECT user_id, SUM(amount) AS total FROM events_unbounded GROUP BY user_id)

-- S14 sub-queries | UnsupportedSql | A sub-query that aggregates over units is
SELECT COUNT(*) FROM (SELECT quantity, COUNT(*) FROM orders GROUP BY quantity)

-- S15 sub-queries | UnsupportedSql | A sub-query with two columns 'a'
SELECT COUNT(*) FROM (SELECT user_id, age AS a, amount AS a FROM events)

-- S16 sub-queries | UnknownName | No table 'b'
WITH a AS (SELECT * FROM b), b AS (SELECT * FROM events) SELECT COUNT(*) FROM a

-- S17 sub-queries | UnsupportedSql | An alias of 2 columns for a sub-query of 1
WITH a(x, y) AS (SELECT user_id FROM events) SELECT COUNT(*) FROM a

-- S18 sub-queries | UnsupportedSql | VALUES is not part of the language
SELECT COUNT(*) FROM (VALUES (1), (2)) AS v

-- S19 sub-queries | UnsupportedSql | A sub-query here is not part of
SELECT COUNT(*) FROM (events JOIN users USING (user_id))

-- S20 sub-queries | UnsupportedSql | IN (SELECT ...) of another column than
SELECT COUNT(*) FROM events WHERE region IN (SELECT age_band FROM users)

-- S21 sub-queries | UnsupportedSql | IN (SELECT ...) of another column than
SELECT COUNT(*) FROM events WHERE user_id IN (SELECT age_band FROM users)

-- S22 sub-queries | UnsupportedSql | IN (SELECT ...) is a test of
SELECT COUNT(*) FROM events WHERE user_id IN (SELECT user_id FROM users) OR smoker

-- S23 sub-queries | UnsupportedSql | EXISTS that does not look for the
SELECT COUNT(*) FROM events WHERE EXISTS (SELECT 1 FROM users WHERE age_band = 'a')

-- S24 sub-queries | UnsupportedSql | EXISTS or IN that compares more than the unit
SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM events u WHERE u.user_id = e.user_id AND u.day < e.day)

-- S25 sub-queries | UnsupportedSql | EXISTS that does not look for the
SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = user_id)

-- S26 sub-queries | UnsupportedSql | IN (SELECT ...) of another column than
SELECT COUNT(*) FROM events WHERE product IN (SELECT product FROM products)

-- S27 sub-queries | UnsupportedSql | ANY or ALL of a sub-query here
SELECT COUNT(*) FROM events WHERE amount > ALL (SELECT amount FROM events)

-- S28 sub-queries | UnsupportedSql | A sub-query in place of a number
SELECT COUNT(*) FROM events WHERE amount > (SELECT AVG(amount) FROM events)

-- S29 sub-queries | UnsupportedSql | EXISTS is a test of units, and
SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id) THEN 1 ELSE 0 END) FROM events e

-- S30 sub-queries | UnsupportedSql | A sub-query here is not part of
SELECT COUNT(*) FROM events WHERE amount > (SELECT amount FROM events)

-- S31 sub-queries | UnsupportedSql | IN (SELECT ...) of another column than
SELECT COUNT(*) FROM orders WHERE quantity IN (SELECT quantity FROM orders)

-- S32 sub-queries | UnsupportedSql | A sub-query here is not part of
SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id GROUP BY u.user_id)

-- W01 windows | UnsupportedSql | A window function (PERCENT_RANK OVER) within one unit
SELECT COUNT(*) FROM (SELECT user_id, PERCENT_RANK() OVER (PARTITION BY user_id ORDER BY day) AS r FROM events)

-- W02 windows | UnsupportedSql | A window function (ROW_NUMBER OVER) reaches across
SELECT COUNT(*) FROM (SELECT user_id, ROW_NUMBER() OVER (ORDER BY day) AS r FROM events)

-- W03 windows | UnsupportedSql | A window function (ROW_NUMBER OVER) reaches across
SELECT COUNT(*) FROM (SELECT user_id, ROW_NUMBER() OVER (PARTITION BY region ORDER BY day) AS r FROM events)

-- W04 windows | UnsupportedSql | A window function (CUME_DIST OVER) within one unit
SELECT COUNT(*) FROM (SELECT user_id, CUME_DIST() OVER (PARTITION BY user_id, region ORDER BY day) AS r FROM events)

-- W05 windows | UnsupportedSql | NULLS FIRST within a unit
SELECT COUNT(*) FROM (SELECT user_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day NULLS FIRST) AS r FROM events)

-- W06 windows | UnsupportedSql | QUALIFY of persons' rows is not computed
SELECT COUNT(*) FROM events QUALIFY ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) = 1

-- W07 windows | UnsupportedSql | A window function (OVER) of persons' rows
SELECT SUM(amount) OVER (PARTITION BY user_id) FROM events

-- W08 windows | UnsupportedSql | A window function (NTILE OVER) within one unit
SELECT COUNT(*) FROM (SELECT user_id, NTILE(2) OVER (PARTITION BY user_id ORDER BY day) AS r FROM events)

-- W09 windows | UnsupportedSql | A window function (ROW_NUMBER OVER) reaches across
SELECT COUNT(*) FROM (SELECT price, ROW_NUMBER() OVER (ORDER BY price) AS r FROM orders)

-- Q01 aggregates | UnsupportedSql | A quantile that is not one constant
SELECT QUANTILE_CONT(amount, 1.5) FROM events

-- Q02 aggregates | UnsupportedSql | A quantile that is not one constant
SELECT QUANTILE_CONT(amount, age) FROM events

-- Q03 aggregates | UnsupportedSql | A quantile that is not one constant
SELECT QUANTILE_CONT(amount, [0.1, 0.9]) FROM events

-- Q04 aggregates | UnsupportedSql | MEDIAN of 'region', which is declared as
SELECT MEDIAN(region) FROM events

-- Q05 aggregates | MissingDeclaration | MAX of product needs declared bounds, and
SELECT MAX(product) FROM events

-- Q06 aggregates | UnsupportedSql | This aggregate (MODE) is not answered
SELECT MODE(region) FROM events

-- Q07 aggregates | UnsupportedSql | This aggregate (ANY_VALUE) is not answered
SELECT ANY_VALUE(amount) FROM events

-- Q08 aggregates | UnsupportedSql | This aggregate (FIRST) is not answered
SELECT FIRST(amount) FROM events

-- Q09 aggregates | UnsupportedSql | This aggregate (ARG_MAX) is not answered
SELECT ARG_MAX(region, amount) FROM events

-- Q10 aggregates | UnsupportedSql | SUM(DISTINCT ...) is not answered
SELECT SUM(DISTINCT amount) FROM events

-- Q11 aggregates | UnsupportedSql | COUNT(DISTINCT ...) of several columns
SELECT COUNT(DISTINCT region, age) FROM events

-- Q12 aggregates | UnsupportedSql | This aggregate (CORR) is not answered
SELECT CORR(amount, age) FROM events

-- Q13 aggregates | UnsupportedSql | The aggregate SUM stands where only a
SELECT SUM(SUM(amount)) FROM events

-- Q15 aggregates | UnsupportedSql | This aggregate (BOOL_OR) is not answered
SELECT BOOL_OR(smoker) FROM events

-- Q16 aggregates | UnsupportedSql | 3 in MAX(amount, 3) is not part of the language
SELECT MAX(amount, 3) FROM events

-- Q17 aggregates | UnsupportedSql | The aggregate COUNT stands where only a
SELECT COUNT(*) FROM events WHERE COUNT(*) > 3

-- O01 outputs | UnsupportedSql | This function SQRT is not computed on
SELECT SQRT(COUNT(*)) FROM events

-- O02 outputs | UnsupportedSql | region || 'x' is not computed on the
SELECT region || 'x', COUNT(*) FROM events GROUP BY region

-- O03 outputs | UnsupportedSql | A CASE over the noisy answer whose
SELECT CASE WHEN COUNT(*) > 3 THEN region ELSE 'few' END FROM events GROUP BY region

-- O04 outputs | UnsupportedSql | A CASE over the noisy answer whose
SELECT CASE WHEN COUNT(*) > 3 THEN 1 ELSE 'few' END FROM events

-- O05 outputs | UnsupportedSql | A number or a text alone is
SELECT COUNT(*) FROM events HAVING COUNT(*)

-- O06 outputs | UnsupportedSql | Column 'amount' outside GROUP BY would show
SELECT COUNT(*) + amount FROM events

-- O07 outputs | UnsupportedSql | A column of nothing but NULL, or
SELECT NULL, COUNT(*) FROM events

-- O08 outputs | UnsupportedSql | A CAST to SMALLINT
SELECT COUNT(*)::SMALLINT FROM events

-- O09 outputs | UnsupportedSql | Column 'region' outside GROUP BY would show
SELECT COUNT(*) FROM events HAVING region LIKE 'R%'

-- O10 outputs | UnsupportedSql | EXISTS is a test of units, and
SELECT COUNT(*) FROM events HAVING EXISTS (SELECT 1 FROM users)

-- P01 parameters | UnsupportedSql | The parameter $1 has no value here
SELECT COUNT(*) FROM events WHERE age = $1

-- P02 parameters | UnsupportedSql | The parameter $name has no value here
SELECT COUNT(*) FROM events WHERE age = :name

-- P03 parameters | UnsupportedSql | The parameter $1 has no value here
SELECT COUNT(*) FROM events WHERE age = ?

-- I01 injection | UnknownName | No table 'events; DROP TABLE events'
SELECT COUNT(*) FROM "events; DROP TABLE events"

-- I03 injection | UnknownName | FROM a function
SELECT COUNT(*) FROM duckdb_tables()

-- I04 injection | UnsupportedSql | information_schema in information_schema.tables is not part of the language
SELECT COUNT(*) FROM information_schema.tables

-- I05 injection | UnsupportedSql | pg_catalog in pg_catalog.events is not part of the language
SELECT COUNT(*) FROM pg_catalog.events

-- I06 injection | UnsupportedSql | The function getenv is not part of
SELECT getenv('HOME'), COUNT(*) FROM events

-- I07 injection | UnknownName | No table 'people.parquet'
SELECT COUNT(*) FROM 'people.parquet'

-- I08 injection | UnsupportedSql | The statement PRAGMA is not a question
PRAGMA database_list

-- I09 injection | UnsupportedSql | The statement ATTACH is not a question
ATTACH 'x.db'

-- I10 injection | UnsupportedSql | The statement SET is not a question
SET memory_limit = '1TB'

-- I11 injection | UnsupportedSql | DELETE FROM events is not part of the language
WITH x AS (DELETE FROM events) SELECT COUNT(*) FROM events

-- I12 injection | UnsupportedSql | The function current_setting is not part of
SELECT COUNT(*) FROM events WHERE current_setting('x') = 'y'

-- L01 argument left out | UnsupportedSql | WIDTH_BUCKET: a number of buckets
SELECT WIDTH_BUCKET(amount, 0, , 20) AS b, COUNT(*) FROM events GROUP BY b

-- L02 argument left out | UnsupportedSql | WIDTH_BUCKET: a number of buckets
SELECT WIDTH_BUCKET(amount, 0, 500, ) AS b, COUNT(*) FROM events GROUP BY b

-- L03 argument left out | UnsupportedSql | WIDTH_BUCKET without constant
SELECT WIDTH_BUCKET(amount) AS b, COUNT(*) FROM events GROUP BY b

-- L04 argument left out | UnsupportedSql | A pattern or a text
SELECT COUNT(*) FROM events WHERE REPLACE(region, 'R') = '01'

-- L05 argument left out | UnsupportedSql | IN without values
SELECT COUNT(*) FROM events WHERE region IN AND ('R01', 'R02')

-- L06 argument left out | UnsupportedSql | IN without values
SELECT COUNT(*) FROM events WHERE region IN ()

-- L07 always NULL | UnsupportedSql | always NULL
SELECT AVG(amount / NULLIF(LEAST(GREATEST(amount, 0), 0), 0)) FROM events

-- L08 always NULL | UnsupportedSql | always NULL
SELECT AVG(amount / NULLIF(0, 0)) FROM events

-- L09 constant as a key | UnsupportedSql | GROUP BY a constant
SELECT COUNT(*) FROM events GROUP BY 1 + 1

-- L10 constant as a key | UnsupportedSql | GROUP BY a constant
SELECT COUNT(*) FROM events GROUP BY DATE '2024-01-01'

-- L11 constant as an order | UnsupportedSql | ORDER BY a constant
SELECT region, COUNT(*) FROM events GROUP BY region ORDER BY 1 + 1

-- L12 constant as an order | UnsupportedSql | ORDER BY a constant within
SELECT COUNT(*) FROM (SELECT user_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY 9223372036854775808) AS n FROM events) WHERE n = 1

-- L13 beyond 62 bits | UnsupportedSql | 62 bits
SELECT COUNT(*) FROM (SELECT user_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY COALESCE(age, 9223372036854775808)) AS n FROM events) WHERE n = 1

-- L14 beyond 62 bits | UnsupportedSql | 62 bits
SELECT SUM(FLOOR(age * 1e-30)) FROM events

-- L15 beyond floats | UnsupportedSql | too large or too small
SELECT SUM(age * 1e-300) FROM events

-- L16 beyond floats | UnsupportedSql | too large or too small
SELECT SUM(age * 1e300 * 1e300) FROM events

-- L17 beyond floats | UnsupportedSql | too large or too small
SELECT age * 1e300 * 1e300 AS k, COUNT(*) FROM events GROUP BY k

-- L18 beyond floats | UnsupportedSql | too large or too small
SELECT COUNT(*) FROM (SELECT user_id, SUM(age * 1e300) AS s FROM events GROUP BY user_id HAVING SUM(age * 1e300) > 1)

-- L19 level of a quantile | UnsupportedSql | a multiple of a millionth
SELECT QUANTILE_CONT(amount, 0.00000001) FROM events

-- L20 grouping sets | UnsupportedSql | 4,096 grouping sets
SELECT COUNT(*) FROM events GROUP BY CUBE(region, smoker, age, day), CUBE(region, smoker, age, day), CUBE(region, smoker, age, day)

-- L21 no group left | UnsupportedSql | leaves no group of age
SELECT age, COUNT(*) FROM events WHERE age > 13 AND age < 12 GROUP BY age
