# SPDX-License-Identifier: Apache-2.0
"""The declarations of the hospitals, and the questions of a study and of a statistics office.

The patient of a prescription is found through its visit. Bounds are common knowledge; none is
derived from the tables.
"""

from collections.abc import Mapping
from pathlib import Path

from sfumato.examples.census import Asked
from sfumato.examples.hospitals_data import (
    DEAREST,
    DRUGS,
    HOSPITALS,
    OLDEST,
    PATIENTS,
    REGIONS,
    SEXES,
    STRONGEST,
    WARDS,
    YEAR,
)
from sfumato.metadata.column import Boolean, Category, Date, Integer, Real, Text
from sfumato.metadata.table import Table
from sfumato.privacy.unit import Unit

PATIENT = Unit("patient_id", max_rows=8, max_groups=3, max_rows_total=12)
VISIT = Unit("visit_id", max_rows_total=1)


# What sums and means keep of the cost of a visit; the dearest possible one costs ten times as much.
KEPT = 2_000


def hospitals(paths: Mapping[str, Path]) -> dict[str, Table]:
    """Returns the four declared tables: three about patients, and the public list of drugs."""
    drug = Category(*(drug.name for drug in DRUGS))
    kinds = sorted({drug.kind for drug in DRUGS})
    return {
        "patients": Table(
            paths["patients"],
            unit=Unit("patient_id", max_rows_total=1),
            columns={
                "hospital": Category(*HOSPITALS),
                "sex": Category(*SEXES),
                "age": Integer(0, OLDEST),
                "region": Category(*REGIONS),
            },
            size=PATIENTS,
        ),
        "visits": visits(paths, PATIENT),
        "prescriptions": Table(
            paths["prescriptions"],
            unit=Unit(
                "visit_id", via="visits.patient_id", max_rows=4, max_groups=3, max_rows_total=8
            ),
            columns={
                "drug": drug,
                "indication": Text(),
                "dose": Real(0, STRONGEST, step="0.25"),
                "response": Boolean(),
            },
        ),
        "drugs": Table(
            paths["drugs"],
            columns={"drug": drug, "class": Category(*kinds)},
            public=True,
        ),
    }


def visits(paths: Mapping[str, Path], unit: Unit) -> Table:
    """Returns the declared table of visits, whose unit is the patient or the visit.

    ``paths`` are the files by table name; that of "visits" is read.
    """
    return Table(
        paths["visits"],
        unit=unit,
        columns={
            "day": Date(f"{YEAR}-01-01", f"{YEAR}-12-31"),
            "ward": Category(*WARDS),
            "diagnosis": Text(),
            # the price list ends far below the dearest stay that a hospital may charge
            "cost": Real(0, DEAREST, clip=KEPT),
        },
    )


def _pure(title: str, epsilon: str, sql: str, **more: str) -> Asked:
    """Returns a question at a price in pure differential privacy."""
    price = (("epsilon", epsilon), *more.items())
    return Asked(title, " ".join(sql.split()), price)


# Whether the drug ever worked for a patient: one row a patient, so one patient changes little.
_EVER = (
    "(SELECT patient_id, MAX(response) AS responded FROM prescriptions "
    "WHERE drug = 'metformin' GROUP BY patient_id)"
)
STUDY = (
    _pure(
        "What share of 60 to 69 year-olds responded to metformin?",
        "0.3",
        f"""SELECT AVG(r.responded) AS responded FROM patients q
        JOIN {_EVER} AS r ON q.patient_id = r.patient_id WHERE q.age BETWEEN 60 AND 69""",
    ),
    _pure(
        "The same, by hospital",
        "0.4",
        f"""SELECT q.hospital, AVG(r.responded) AS responded FROM patients q
        JOIN {_EVER} AS r ON q.patient_id = r.patient_id WHERE q.age BETWEEN 60 AND 69
        GROUP BY q.hospital""",
    ),
    _pure(
        "What share of the prescriptions worked? A patient may have several",
        "0.3",
        """SELECT AVG(p.response) AS worked FROM prescriptions p
        JOIN patients q ON p.patient_id = q.patient_id
        WHERE p.drug = 'metformin' AND q.age BETWEEN 60 AND 69""",
    ),
    _pure(
        "Mean dose by class of drug, in defined daily doses",
        "0.3",
        """SELECT d.class, AVG(p.dose) AS mean_dose FROM prescriptions p
        JOIN drugs d ON p.drug = d.drug GROUP BY d.class""",
    ),
    _pure(
        "Patients with three visits or more",
        "0.1",
        """SELECT COUNT(*) AS patients FROM
        (SELECT patient_id FROM visits GROUP BY patient_id HAVING COUNT(*) >= 3) AS often""",
    ),
    _pure("The median cost of a visit", "0.2", "SELECT MEDIAN(cost) AS median_cost FROM visits"),
    _pure(
        f"The mean cost of a visit; sums keep at most {KEPT:,} of each",
        "0.3",
        "SELECT AVG(cost) AS mean_cost FROM visits",
    ),
    _pure(
        "What ibuprofen is prescribed for most; which diagnoses occur is not public",
        "0.4",
        """SELECT indication, COUNT(DISTINCT patient_id) AS patients FROM prescriptions
        WHERE drug = 'ibuprofen' GROUP BY indication ORDER BY patients DESC LIMIT 5""",
        delta="1e-7",
    ),
)
OFFICE = (
    _pure(
        "Patients by hospital, sex and age, with all totals",
        "0.4",
        """SELECT hospital, sex,
        CASE WHEN age < 18 THEN 'under 18' WHEN age < 65 THEN '18 to 64' ELSE '65 and over' END
        AS ages, ROUND(COUNT(*)) AS patients FROM patients GROUP BY ROLLUP (hospital, sex, ages)""",
    ),
    _pure(
        "Visits per patient by region, with those who never came",
        "0.3",
        """SELECT q.region, AVG(COALESCE(o.visits, 0)) AS visits FROM patients q
        LEFT JOIN (SELECT patient_id, COUNT(*) AS visits FROM visits GROUP BY patient_id) AS o
        ON q.patient_id = o.patient_id GROUP BY q.region""",
    ),
)
REFUSED = _pure(
    "Each patient's visits",
    "0.1",
    "SELECT patient_id, COUNT(*) AS visits FROM visits GROUP BY patient_id",
)
UNITS = _pure("Visits by ward", "0.2", "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward")
