# SPDX-License-Identifier: Apache-2.0
"""Synthetic data of three hospitals: patients, their visits, prescriptions, and a list of drugs.

No row is about a real person. The data is generated from a seed, so every run of the demo has the
same patients. ``random.Random`` is fit for that and unfit for noise, where a known seed reveals
the data; noise is drawn in the room ``noise`` alone.
"""

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeAlias

import pyarrow
import pyarrow.parquet

Row: TypeAlias = tuple[object, ...]

PATIENTS = 5_000
SEED = 2026
YEAR = 2025
HOSPITALS = ("Northgate", "Riverside", "St. Anne")
REGIONS = ("city", "coast", "hills", "lakes")
SEXES = ("female", "male")
WARDS = ("emergency", "internal", "psychiatry", "surgery")
OLDEST, DEAREST, STRONGEST = 100, 20_000.0, 4.0


@dataclass(frozen=True, slots=True)
class _Drug:
    """A drug of the public list.

    ``kind`` is its class, ``dose`` the usual dose in defined daily doses. ``works`` is the log-odds
    of a response at the age of 60, ``per_decade`` the change for each ten years more.
    """

    name: str
    kind: str
    dose: float
    works: float = 0.8
    per_decade: float = -0.1


@dataclass(frozen=True, slots=True)
class _Illness:
    """A diagnosis: its ICD-10 code, frequency, typical age, ward and drugs."""

    code: str
    weight: float
    age: int
    ward: str = "internal"
    drugs: tuple[str, ...] = ()
    chronic: bool = False


DRUGS = (
    _Drug("metformin", "antidiabetic", 1.25, 1.1, -0.45),
    _Drug("gliclazide", "antidiabetic", 1, 0.6, -0.2),
    _Drug("lisinopril", "antihypertensive", 1.5, 1.0, -0.15),
    _Drug("amlodipine", "antihypertensive", 1.5, 0.9),
    _Drug("metoprolol", "antihypertensive", 0.75, 0.7),
    _Drug("atorvastatin", "statin", 2, 1.4, 0.0),
    _Drug("apixaban", "anticoagulant", 1, 1.6, 0.0),
    _Drug("aspirin", "anticoagulant", 1, 1.2, 0.0),
    _Drug("salbutamol", "bronchodilator", 0.75, 1.3, -0.3),
    _Drug("tiotropium", "bronchodilator", 1, 0.5, -0.2),
    _Drug("amoxicillin", "antibiotic", 1.5, 1.8, -0.1),
    _Drug("nitrofurantoin", "antibiotic", 1, 1.5, -0.1),
    _Drug("ibuprofen", "analgesic", 0.75, 0.9, -0.2),
    _Drug("paracetamol", "analgesic", 0.5, 0.5, -0.1),
    _Drug("sertraline", "antidepressant", 1.25, 0.2, 0.1),
    _Drug("omeprazole", "acid blocker", 1, 1.5, 0.0),
)
ILLNESSES = (
    _Illness("I10", 16, 68, drugs=("lisinopril", "amlodipine", "metoprolol"), chronic=True),
    _Illness(
        "E11", 18, 64, drugs=("metformin", "metformin", "metformin", "gliclazide"), chronic=True
    ),
    _Illness("I25", 6, 72, drugs=("atorvastatin", "aspirin", "metoprolol"), chronic=True),
    _Illness("I48", 4, 76, drugs=("apixaban", "metoprolol"), chronic=True),
    _Illness("E78", 6, 62, drugs=("atorvastatin",), chronic=True),
    _Illness("J44", 4, 70, drugs=("tiotropium", "salbutamol"), chronic=True),
    _Illness("J45", 5, 22, drugs=("salbutamol",), chronic=True),
    _Illness("F32", 6, 38, "psychiatry", ("sertraline",), chronic=True),
    _Illness("F41", 3, 32, "psychiatry", ("sertraline",)),
    _Illness("M17", 4, 70, "surgery", ("ibuprofen", "paracetamol"), chronic=True),
    _Illness("M54", 8, 48, drugs=("ibuprofen", "paracetamol")),
    _Illness("K21", 4, 50, drugs=("omeprazole",)),
    _Illness("J18", 3, 66, drugs=("amoxicillin", "paracetamol")),
    _Illness("J06", 6, 15, "emergency", ("paracetamol", "ibuprofen")),
    _Illness("N39", 4, 55, "emergency", ("nitrofurantoin", "amoxicillin")),
    _Illness("G43", 3, 32, "emergency", ("ibuprofen",)),
    _Illness("R07", 4, 55, "emergency", ("aspirin",)),
    _Illness("S52", 3, 20, "emergency", ("ibuprofen", "paracetamol")),
    _Illness("S72", 2, 80, "surgery", ("paracetamol",)),
    _Illness("K35", 2, 24, "surgery", ("amoxicillin", "paracetamol")),
    _Illness("K80", 2, 55, "surgery", ("ibuprofen",)),
    _Illness("H25", 2, 74, "surgery"),
    _Illness("Z00", 4, 45),
    # rare ones: a list of the diagnoses that occur would identify a patient
    _Illness("E84", 0.05, 12, drugs=("salbutamol", "amoxicillin"), chronic=True),
    _Illness("D57", 0.05, 25, "emergency", ("ibuprofen",), chronic=True),
    _Illness("M32", 0.06, 35, drugs=("ibuprofen",), chronic=True),
    _Illness("G35", 0.08, 35, drugs=("ibuprofen",), chronic=True),
    _Illness("Q87", 0.02, 10, "surgery", ("ibuprofen",)),
)
_COLUMNS = {
    "patients": ("patient_id", "hospital", "sex", "age", "region"),
    "visits": ("visit_id", "patient_id", "day", "ward", "diagnosis", "cost"),
    "prescriptions": ("prescription_id", "visit_id", "drug", "indication", "dose", "response"),
    "drugs": ("drug", "class"),
}
# The effect of a hospital on the log-odds of a response; the mean log cost of a visit by ward.
_CARE = {"Northgate": 0.3, "Riverside": 0.0, "St. Anne": -0.25}
_LOG_COST = {"emergency": 6.0, "internal": 6.6, "psychiatry": 7.0, "surgery": 8.1}
# The weights with which patients of a region choose among the hospitals.
_NEAR = {
    "city": (2, 5, 3),
    "coast": (6, 2, 1),
    "hills": (1, 2, 6),
    "lakes": (4, 3, 2),
}


@dataclass(frozen=True, slots=True)
class Patient:
    """A row of ``patients``, with the number of visits and the chronic illnesses."""

    patient_id: str
    hospital: str
    sex: str
    age: int
    region: str
    visits: int
    chronic: tuple[_Illness, ...]

    @property
    def row(self) -> Row:
        """The columns of the table ``patients``."""
        return self.patient_id, self.hospital, self.sex, self.age, self.region


def write_hospitals(folder: Path, *, patients: int = PATIENTS, seed: int = SEED) -> dict[str, Path]:
    """Writes the four tables as Parquet files into a folder; returns their paths by name."""
    # synthetic data: nothing private depends on this generator
    random = Random(seed)  # noqa: S311
    people = [_patient(random, number) for number in range(1, patients + 1)]
    visits: list[Row] = []
    prescriptions: list[Row] = []
    for patient in people:
        for _ in range(patient.visits):
            illness = _illness(random, patient)
            visits.append(_visit(random, len(visits) + 1, patient, illness))
            for drug in _prescribed(random, illness):
                number = f"R{len(prescriptions) + 1:06d}"
                visit = visits[-1][0]
                dose, response = _response(random, patient, drug)
                row = (number, visit, drug.name, illness.code, dose, response)
                prescriptions.append(row)
    rows: dict[str, list[Row]] = {
        "patients": [patient.row for patient in people],
        "visits": visits,
        "prescriptions": prescriptions,
        "drugs": [(drug.name, drug.kind) for drug in DRUGS],
    }
    paths = {}
    for name, columns in _COLUMNS.items():
        paths[name] = folder / f"{name}.parquet"
        _write(paths[name], columns, rows[name])
    return paths


def _write(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Writes rows as a Parquet file."""
    values = [list(column) for column in zip(*rows, strict=True)]
    table = pyarrow.table(dict(zip(columns, values, strict=True)))
    pyarrow.parquet.write_table(table, path)


def _patient(random: Random, number: int) -> Patient:
    """Returns a random patient."""
    age = _age(random)
    region = random.choices(REGIONS, (5, 3, 2, 2))[0]
    hospital = random.choices(HOSPITALS, _NEAR[region])[0]
    sex = random.choice(SEXES)
    frail = random.gauss(0, 0.5)
    lasting = _poisson(random, 0.1 + age / 55)
    chronic = tuple(_draw(random, age, chronic=True) for _ in range(min(lasting, 3)))
    rate = (0.7 + age / 60 + len(chronic)) * math.exp(frail)
    return Patient(f"P{number:05d}", hospital, sex, age, region, _poisson(random, rate), chronic)


def _age(random: Random) -> int:
    """Returns a random age: one patient in seven is a child."""
    if random.random() < 0.15:
        return random.randrange(18)
    return min(max(round(random.gauss(57, 18)), 18), OLDEST)


def _illness(random: Random, patient: Patient) -> _Illness:
    """Returns the illness of a visit: a chronic one of the patient, or a new one."""
    if patient.chronic and random.random() < 0.7:
        return random.choice(patient.chronic)
    return _draw(random, patient.age, chronic=False)


def _draw(random: Random, age: int, *, chronic: bool) -> _Illness:
    """Returns a random illness, by its frequency around this age."""
    among = [illness for illness in ILLNESSES if illness.chronic or not chronic]
    weights = []
    for illness in among:
        distance = (age - illness.age) / 22
        weights.append(illness.weight * math.exp(-(distance**2) / 2) + 1e-9)
    return random.choices(among, weights)[0]


def _visit(random: Random, number: int, patient: Patient, illness: _Illness) -> Row:
    """Returns a row of ``visits``."""
    days = datetime.timedelta(days=random.randrange(365))
    day = datetime.date(YEAR, 1, 1) + days
    log_cost = random.gauss(_LOG_COST[illness.ward] + patient.age / 200, 0.6)
    cost = min(round(math.exp(log_cost), 2), DEAREST)
    return f"V{number:06d}", patient.patient_id, day, illness.ward, illness.code, cost


def _prescribed(random: Random, illness: _Illness) -> list[_Drug]:
    """Returns no, one or two different drugs for an illness."""
    if not illness.drugs or random.random() < 0.08:
        return []
    names = {random.choice(illness.drugs)}
    if random.random() < 0.3:
        names.add(random.choice(illness.drugs))
    return [_BY_NAME[name] for name in sorted(names)]


def _response(random: Random, patient: Patient, drug: _Drug) -> tuple[float, bool | None]:
    """Returns the dose, and whether the drug helped; None for one in eight."""
    factor = random.choice((0.5, 1, 1, 1, 1.5, 2))
    quarters = round(4 * drug.dose * factor)
    dose = min(quarters / 4, STRONGEST)
    if random.random() < 1 / 8:
        return dose, None
    odds = drug.works + drug.per_decade * (patient.age - 60) / 10 + _CARE[patient.hospital]
    return dose, random.random() < 1 / (1 + math.exp(-odds))


def _poisson(random: Random, mean: float) -> int:
    """Returns a Poisson number, by Knuth's product of uniform numbers; for small means."""
    count, product, least = 0, random.random(), math.exp(-mean)
    while product > least:
        count += 1
        product *= random.random()
    return count


_BY_NAME: Mapping[str, _Drug] = {drug.name: drug for drug in DRUGS}
