-- Statements that give, where nothing is cut, what DuckDB gives; one a paragraph.

SELECT COUNT(*), COUNT(cost), SUM(cost), AVG(cost), COUNT(DISTINCT patient_id), COUNT(DISTINCT ward) FROM
    visits

SELECT SUM(cost) / COUNT(*), AVG(cost) * 2 + 1 FROM visits

SELECT COUNT(*) FILTER (WHERE cost > 10), COUNT_IF(urgent), SUM(cost) FILTER (WHERE urgent), AVG(cost) FILTER
    (WHERE urgent) FROM visits

SELECT COUNT(cost) FILTER (WHERE ward = 'eye'), COUNT(DISTINCT ward) FILTER (WHERE cost > 30) FROM visits

SELECT AVG(CASE WHEN cost > 10 THEN 1 WHEN cost <= 10 THEN 0 END), SUM(CASE WHEN urgent THEN cost ELSE 0 END),
    SUM(urgent AND cost > 10) FROM visits

SELECT ward, COUNT(*), SUM(cost) FROM visits WHERE ward IS NOT NULL GROUP BY ward

SELECT MONTH(day) AS m, COUNT(*) FROM visits GROUP BY m

SELECT DATE_TRUNC('month', day), COUNT(*) FROM visits GROUP BY 1

SELECT cost > 10 AS dear, COUNT(*) FROM visits WHERE cost IS NOT NULL GROUP BY ALL

SELECT UPPER(ward), urgent, COUNT(*) FROM visits WHERE ward IS NOT NULL AND urgent IS NOT NULL GROUP BY
    UPPER(ward), urgent

SELECT CASE WHEN cost < 5 THEN 'low' WHEN cost < 50 THEN 'mid' ELSE 'high' END AS band, COUNT(*) FROM visits
    GROUP BY band

SELECT visit_id, COUNT(*) FROM visits GROUP BY visit_id

SELECT drug, COUNT(*), SUM(dose) FROM prescriptions WHERE drug IS NOT NULL GROUP BY drug

SELECT COUNT(*) FROM visits WHERE patient_id = 'p1' OR patient_id IN ('p3', 'p9')

SELECT COUNT(DISTINCT visit_id) FILTER (WHERE cost > 10), COUNT(DISTINCT COALESCE(visit_id, 'x')),
    COUNT(*) FILTER (WHERE TRIM(visit_id) = 'v1' OR CONTAINS(visit_id, '7')) FROM visits

SELECT COALESCE(NULLIF(TRIM(visit_id), 'v1'), 'none') AS k, COUNT(*) FROM visits GROUP BY k

SELECT CASE WHEN visit_id IN ('v1', 'v2') THEN visit_id ELSE 'later' END AS k, COUNT(*) FROM visits GROUP BY 1

-- joins on the unit, from either side

SELECT COUNT(*), SUM(v.cost) FROM visits v JOIN patients p ON v.patient_id = p.patient_id WHERE p.age > 60

SELECT COUNT(*), SUM(v.cost) FROM patients p JOIN visits v ON v.patient_id = p.patient_id WHERE p.age > 60

SELECT sex, COUNT(*), AVG(cost) FROM visits JOIN patients USING (patient_id) WHERE sex IS NOT NULL GROUP BY
    sex

SELECT COUNT(*), COUNT(p.age), COUNT(DISTINCT v.patient_id) FROM visits v LEFT JOIN patients p ON v.patient_id
    = p.patient_id

SELECT COUNT(*), COUNT(p.age) FROM patients p RIGHT JOIN visits v ON v.patient_id = p.patient_id

SELECT COUNT(*) FROM visits v LEFT JOIN patients p ON v.patient_id = p.patient_id WHERE p.patient_id IS NULL

SELECT COUNT(*), COUNT(p.age) FROM visits v LEFT JOIN patients p ON v.patient_id = p.patient_id AND p.age > 60

SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id AND v.day = p.joined AND p.sex =
    'F'

SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id WHERE DATE_DIFF('day', p.joined,
    v.day) BETWEEN 1 AND 60

SELECT COUNT(*), SUM(n) FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY
    patient_id) v USING (patient_id)

-- public tables

SELECT d.kind, COUNT(*), SUM(dose * price) FROM prescriptions p JOIN drugs d ON p.drug = d.drug GROUP BY
    d.kind

SELECT COUNT(*), COUNT(d.kind) FROM prescriptions p LEFT JOIN drugs d USING (drug)

SELECT COUNT(*) FROM drugs d JOIN prescriptions p ON d.drug = p.drug WHERE d.price > 2

-- sub-queries of one row a unit

WITH per AS (SELECT patient_id, SUM(cost) AS total, COUNT(*) AS n FROM visits GROUP BY patient_id) SELECT
    AVG(total), SUM(n), COUNT(*) FROM per

SELECT n, COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY 1) AS per GROUP BY n ORDER BY n

SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE cost > 5 GROUP BY patient_id HAVING COUNT(*) >= 2)

SELECT AVG(mean), COUNT(*) FROM (SELECT patient_id, AVG(cost) AS mean FROM visits GROUP BY patient_id) AS per

SELECT d, COUNT(*) FROM (SELECT patient_id, MIN(day) AS d FROM visits GROUP BY patient_id) AS f GROUP BY d

SELECT COUNT(*) FROM (SELECT patient_id, MAX(ward) AS w FROM visits GROUP BY patient_id) AS f WHERE w =
    'heart'

SELECT COUNT(*) FROM (SELECT patient_id, BOOL_OR(urgent) AS u FROM visits GROUP BY patient_id) AS f WHERE u

SELECT ward, COUNT(*), SUM(n) FROM (SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY patient_id,
    ward) AS f WHERE ward IS NOT NULL GROUP BY ward

SELECT COUNT(*) FROM (SELECT DISTINCT patient_id FROM visits)

SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, ward FROM visits)

SELECT m, COUNT(*) FROM (SELECT patient_id, MONTH(day) AS m, COUNT(DISTINCT ward) AS w FROM visits GROUP BY
    patient_id, MONTH(day) HAVING w > 0) AS f GROUP BY m

SELECT SUM(a) FROM (SELECT patient_id, COUNT(*) FILTER (WHERE urgent) * 2 AS a FROM visits GROUP BY
    patient_id) AS f

SELECT COUNT(*) FROM (SELECT patient_id, SUM(c) AS s FROM (SELECT patient_id, ward, MAX(cost) AS c FROM visits
    GROUP BY patient_id, ward) AS i GROUP BY patient_id) AS o WHERE s > 30

-- windows over one unit's rows

WITH x AS (SELECT patient_id, cost, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS rn
    FROM visits) SELECT AVG(cost), COUNT(*) FROM x WHERE rn = 1

SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day DESC) AS rn FROM
    visits) AS x WHERE rn <= 2 AND cost > 1

SELECT COUNT(*), SUM(p.age) FROM (SELECT patient_id, ward, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY
    day) AS rn FROM visits) AS f JOIN patients p USING (patient_id) WHERE rn = 1 AND ward = 'heart'

-- tests of units

SELECT COUNT(*) FROM visits WHERE patient_id IN (SELECT patient_id FROM patients WHERE age > 60)

SELECT COUNT(*) FROM visits WHERE patient_id NOT IN (SELECT patient_id FROM patients WHERE age > 60) AND cost
    > 1

SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.patient_id = v.patient_id AND
    p.sex = 'F')

SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits WHERE patient_id = p.patient_id AND
    urgent)

SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits GROUP BY patient_id HAVING
    COUNT(*) > 1)

SELECT COUNT(*) FROM patients SEMI JOIN visits USING (patient_id)

SELECT COUNT(*) FROM patients p ANTI JOIN visits v ON p.patient_id = v.patient_id

-- rows of several tables

SELECT COUNT(*), SUM(x) FROM (SELECT patient_id, cost AS x FROM visits UNION ALL SELECT patient_id, age FROM
    patients) AS u

SELECT COUNT(DISTINCT patient_id), SUM(d) FROM (SELECT patient_id, MONTH(day) AS d FROM visits UNION ALL
    SELECT patient_id, 0 FROM patients UNION ALL SELECT patient_id, 1 FROM patients) AS u

SELECT s, COUNT(*) FROM (SELECT patient_id, sex AS s FROM patients UNION ALL SELECT patient_id, ward FROM
    visits) AS u WHERE s IS NOT NULL GROUP BY s

-- names

WITH a AS (SELECT * FROM visits WHERE cost > 1), b AS (SELECT a.*, cost + 1 AS more FROM a) SELECT SUM(more),
    COUNT(DISTINCT patient_id) FROM b

SELECT COUNT(*) FROM visits AS a JOIN (SELECT patient_id, MAX(day) AS last FROM visits GROUP BY patient_id) AS
    b ON a.patient_id = b.patient_id WHERE a.day < b.last

SELECT ward, COUNT(*) FROM beds GROUP BY ward

SELECT COUNT(*), COUNT(used) FROM (SELECT used FROM beds WHERE ward <> 'heart')

SELECT COUNT(*), COUNT(p.patient_id), COUNT(v.patient_id), COUNT(p.patient_id) FILTER (WHERE p.age > 60)
FROM visits v LEFT JOIN patients p ON v.patient_id = p.patient_id AND p.age > 30

SELECT sex, COUNT(v.cost), SUM(v.cost), COUNT(*), COUNT(v.patient_id) FROM patients p LEFT JOIN visits v ON
    v.patient_id = p.patient_id WHERE sex IS NOT NULL GROUP BY sex

SELECT ward, COUNT(*), AVG(age) FROM visits v RIGHT JOIN patients p USING (patient_id) GROUP BY ward

SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND v.ward = 'eye' WHERE
    v.patient_id IS NULL

SELECT sex, COUNT(*), COUNT(v.visit_id), SUM(v.cost) FROM patients p LEFT JOIN visits v ON v.patient_id =
    p.patient_id AND v.day >= p.joined + 30 AND v.cost > 1 WHERE sex IS NOT NULL GROUP BY sex

SELECT COUNT(*), SUM(v.cost), COUNT(d.kind) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id
    LEFT JOIN drugs d ON d.drug = v.visit_id WHERE p.age > 35

SELECT AVG(n), COUNT(*) FROM (SELECT p.patient_id, COUNT(v.visit_id) AS n FROM patients p LEFT JOIN visits v
    ON v.patient_id = p.patient_id GROUP BY p.patient_id)

SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.patient_id = v.patient_id AND
    p.joined < v.day)

SELECT COUNT(*), SUM(cost) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM patients p WHERE p.patient_id =
    v.patient_id AND p.joined < v.day AND p.sex = 'F')

SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE p.patient_id = v.patient_id AND
    v.day >= p.joined + 30)

SELECT sex, COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE p.patient_id =
    v.patient_id AND v.day >= p.joined + 30) AND sex IS NOT NULL GROUP BY sex

SELECT ward, COUNT(*), SUM(cost) FROM visits WHERE (patient_id, day) IN (SELECT patient_id, MIN(day) FROM
    visits GROUP BY patient_id) GROUP BY ward

SELECT COUNT(*) FROM patients WHERE (patient_id, joined) IN (SELECT patient_id, day FROM visits WHERE urgent)

SELECT v.ward, COUNT(*) FROM visits v JOIN (SELECT patient_id, ward, ROW_NUMBER() OVER (PARTITION BY
    patient_id ORDER BY day, visit_id) AS nth FROM visits) f ON f.patient_id = v.patient_id WHERE f.nth = 1
    AND f.ward = 'eye' GROUP BY v.ward

WITH n AS (SELECT patient_id, day, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS nth
    FROM visits) SELECT AVG(s.day - f.day), COUNT(*) FROM n AS f JOIN n AS s ON s.patient_id = f.patient_id
    AND s.nth = 2 WHERE f.nth = 1

SELECT sex, AVG((SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id)) AS n, COUNT(*) FROM
    patients p WHERE sex IS NOT NULL GROUP BY sex

SELECT COUNT(*) FROM patients p WHERE (SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id AND
    v.cost > 5) > 1

SELECT COUNT(*), SUM(age) FROM patients p WHERE (SELECT COUNT(cost) FROM visits WHERE p.patient_id =
    visits.patient_id) = 0

SELECT COUNT(*), SUM(cost) FROM visits v WHERE cost > (SELECT AVG(w.cost) FROM visits w WHERE w.patient_id =
    v.patient_id)

SELECT ward, COUNT(*) FROM visits v WHERE day = (SELECT MIN(w.day) FROM visits w WHERE w.patient_id =
    v.patient_id) GROUP BY ward

SELECT n, COUNT(*) FROM (SELECT p.patient_id, (SELECT COUNT(*) FROM visits v WHERE v.patient_id =
    p.patient_id) AS n FROM patients p) AS t WHERE n < 3 GROUP BY n

SELECT COUNT(total), SUM(total) FROM (SELECT (SELECT SUM(v.cost) + MAX(v.cost) FROM visits v WHERE
    v.patient_id = p.patient_id) AS total, (SELECT MIN(day) FROM visits v WHERE v.patient_id = p.patient_id)
    AS d FROM patients p) AS t WHERE d > DATE '2024-01-10'

SELECT w, COUNT(*) FROM (SELECT patient_id, ARG_MIN(ward, day) AS w FROM visits GROUP BY patient_id) AS t
    GROUP BY w

SELECT w, COUNT(*), SUM(n), SUM(c) FROM (SELECT patient_id, ARG_MAX(ward, cost) AS w, COUNT(*) AS n,
    MIN_BY(cost, day) AS c FROM visits WHERE day > DATE '2024-01-05' GROUP BY patient_id HAVING COUNT(*) > 0)
    AS t WHERE w IS NOT NULL GROUP BY w

SELECT SUM(c), COUNT(c), COUNT(*) FROM (SELECT patient_id, FIRST(cost ORDER BY day DESC) AS c FROM visits
    GROUP BY patient_id) AS t

SELECT COUNT(*), SUM(c) FROM (SELECT patient_id, ARG_MIN(cost, day) FILTER (WHERE urgent) AS c FROM visits
    GROUP BY patient_id) AS t WHERE c > 9

SELECT COUNT(DISTINCT CASE WHEN urgent THEN patient_id END), COUNT(DISTINCT patient_id), COUNT(*) FROM visits

SELECT ward, COUNT(DISTINCT patient_id) FILTER (WHERE cost > 10), COUNT(DISTINCT IF(cost > 10, patient_id,
    NULL)), SUM(cost) FROM visits WHERE ward IS NOT NULL GROUP BY ward

SELECT COUNT(DISTINCT CASE WHEN cost > 10 THEN patient_id END) FILTER (WHERE ward = 'heart') FROM visits

SELECT sex, COUNT(DISTINCT p.patient_id), COUNT(DISTINCT v.patient_id), COUNT(DISTINCT v.patient_id) FILTER
    (WHERE v.urgent) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id WHERE sex IS NOT NULL
    GROUP BY sex

SELECT COUNT(*), COUNT(g), SUM(g) FROM (SELECT patient_id, day - LAG(day) OVER (PARTITION BY patient_id ORDER BY
    day, visit_id) AS g FROM visits)

SELECT COUNT(*) FROM (SELECT patient_id, ward, LEAD(ward, 1) OVER (PARTITION BY patient_id ORDER BY day, visit_id)
    AS later FROM visits) WHERE ward = 'eye' AND later IS DISTINCT FROM 'eye'

-- funnels: each step joined to the one before

WITH a AS (SELECT patient_id, MIN(day) AS d FROM visits WHERE ward = 'eye' GROUP BY patient_id), b AS (SELECT patient_id,
    MIN(day) AS d FROM visits WHERE ward = 'ear' GROUP BY patient_id) SELECT COUNT(*), COUNT(a.patient_id),
    COUNT(DISTINCT b.patient_id), SUM(b.d - a.d) FROM patients p LEFT JOIN a ON a.patient_id = p.patient_id LEFT JOIN b
    ON b.patient_id = a.patient_id AND b.d >= a.d

WITH a AS (SELECT DISTINCT patient_id FROM visits WHERE ward = 'heart') SELECT sex, COUNT(*), COUNT(a.patient_id) FROM
    patients p LEFT JOIN a ON a.patient_id = p.patient_id WHERE sex IS NOT NULL GROUP BY sex

WITH a AS (SELECT DISTINCT patient_id FROM visits WHERE ward = 'heart') SELECT COUNT(*) FROM patients p LEFT JOIN a ON
    a.patient_id = p.patient_id WHERE a.patient_id IS NULL

SELECT COUNT(*), COUNT(p.age), SUM(p.age) FROM visits v LEFT JOIN patients p ON p.patient_id = v.patient_id AND p.joined
    < v.day

SELECT COUNT(DISTINCT CASE WHEN v.cost > 10 THEN v.patient_id END) FROM patients p LEFT JOIN visits v ON v.patient_id =
    p.patient_id

-- windows over all rows of a person, defaults, texts of other rows

SELECT SUM(c), SUM(m - n), AVG(a), COUNT(*) FROM (SELECT patient_id, COUNT(cost) OVER (PARTITION BY patient_id) AS c,
    MAX(cost) OVER (PARTITION BY patient_id) AS m, MIN(cost) OVER (PARTITION BY patient_id) AS n, AVG(cost) OVER
    (PARTITION BY patient_id) AS a FROM visits)

SELECT COUNT(*) FROM (SELECT * FROM visits WHERE cost IS NOT NULL QUALIFY cost = MAX(cost) OVER (PARTITION BY patient_id))

SELECT SUM(s) FROM (SELECT SUM(cost) FILTER (WHERE urgent) OVER (PARTITION BY patient_id) AS s FROM visits)

SELECT w, COUNT(*) FROM (SELECT DISTINCT patient_id, FIRST_VALUE(ward) OVER (PARTITION BY patient_id ORDER BY day,
    visit_id) AS w FROM visits) GROUP BY w

SELECT SUM(day - f), COUNT(f) FROM (SELECT day, FIRST_VALUE(day) OVER (PARTITION BY patient_id ORDER BY day) AS f FROM visits)

SELECT SUM(l - day), COUNT(l) FROM (SELECT day, LAST_VALUE(day) OVER (PARTITION BY patient_id ORDER BY cost, visit_id ROWS
    BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM visits)

SELECT SUM(p), COUNT(p), COUNT(*) FROM (SELECT LAG(cost, 1, 100) OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS
    p FROM visits)

SELECT p, COUNT(*) FROM (SELECT LEAD(ward, 2, 'none') OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS p FROM
    visits) WHERE p IS NOT NULL GROUP BY p

SELECT COUNT(*) FILTER (WHERE p = 'v1'), COUNT(*) FILTER (WHERE p <> visit_id), COUNT(DISTINCT p) FROM (SELECT visit_id,
    LAG(visit_id) OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS p FROM visits)

SELECT r, COUNT(*) FROM (SELECT patient_id, LEAST(RANK() OVER (PARTITION BY patient_id ORDER BY ward), 9) AS r FROM
    visits) GROUP BY r

SELECT SUM(LEAST(r, 9)) FROM (SELECT patient_id, DENSE_RANK() OVER (PARTITION BY patient_id ORDER BY ward DESC) AS
    r FROM visits WHERE ward IS NOT NULL)

SELECT COUNT(*) FROM (SELECT patient_id, ROW_NUMBER() OVER (PARTITION BY patient_id, ward ORDER BY day) AS rn FROM
    visits) WHERE rn = 1

SELECT SUM(cost), COUNT(*) FROM (SELECT * FROM visits WHERE cost IS NOT NULL QUALIFY ROW_NUMBER() OVER (PARTITION
    BY patient_id ORDER BY day, visit_id) = 1)

SELECT COUNT(*) FROM (SELECT patient_id, cost, LAG(cost) OVER (PARTITION BY patient_id, urgent ORDER BY day,
    visit_id) AS before FROM visits QUALIFY cost > before)

SELECT COUNT(CASE WHEN cost > 10 THEN patient_id END), COUNT(*) FILTER (WHERE CONCAT(ward, MONTH(day)) LIKE 'e%2')
    FROM visits WHERE ward IS NOT NULL AND day IS NOT NULL

SELECT SUM(STRPOS(ward, 'e')), SUM(POSITION('ar' IN ward)) FROM visits
