# SPDX-License-Identifier: Apache-2.0
"""Three hospitals, made up: patients, their visits, what was prescribed, and a list of drugs.

Nobody is in these tables. They come from a seed, so that everyone who runs the demo has the
same patients. ``random.Random`` is right for that, and would be wrong for noise, where a
seed is a leak: what is released is drawn in ``noise`` alone.
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
class Drug:
    """A drug of the public list: its class, the usual dose in defined daily doses, and whom it helps.

    ``works``: the log-odds of a response at 60 years; ``per_decade``: what ten years more change.
    """

    name: str
    kind: str
    dose: float
    works: float = 0.8
    per_decade: float = -0.1


@dataclass(frozen=True, slots=True)
class Illness:
    """A diagnosis (ICD-10): how common, at which age, where it is treated, and with what."""

    code: str
    weight: float
    age: int
    ward: str = "internal"
    drugs: tuple[str, ...] = ()
    chronic: bool = False


DRUGS = (
    Drug("metformin", "antidiabetic", 1.25, 1.1, -0.45),
    Drug("gliclazide", "antidiabetic", 1, 0.6, -0.2),
    Drug("lisinopril", "antihypertensive", 1.5, 1.0, -0.15),
    Drug("amlodipine", "antihypertensive", 1.5, 0.9),
    Drug("metoprolol", "antihypertensive", 0.75, 0.7),
    Drug("atorvastatin", "statin", 2, 1.4, 0.0),
    Drug("apixaban", "anticoagulant", 1, 1.6, 0.0),
    Drug("aspirin", "anticoagulant", 1, 1.2, 0.0),
    Drug("salbutamol", "bronchodilator", 0.75, 1.3, -0.3),
    Drug("tiotropium", "bronchodilator", 1, 0.5, -0.2),
    Drug("amoxicillin", "antibiotic", 1.5, 1.8, -0.1),
    Drug("nitrofurantoin", "antibiotic", 1, 1.5, -0.1),
    Drug("ibuprofen", "analgesic", 0.75, 0.9, -0.2),
    Drug("paracetamol", "analgesic", 0.5, 0.5, -0.1),
    Drug("sertraline", "antidepressant", 1.25, 0.2, 0.1),
    Drug("omeprazole", "acid blocker", 1, 1.5, 0.0),
)
ILLNESSES = (
    Illness("I10", 16, 68, drugs=("lisinopril", "amlodipine", "metoprolol"), chronic=True),
    Illness(
        "E11", 18, 64, drugs=("metformin", "metformin", "metformin", "gliclazide"), chronic=True
    ),
    Illness("I25", 6, 72, drugs=("atorvastatin", "aspirin", "metoprolol"), chronic=True),
    Illness("I48", 4, 76, drugs=("apixaban", "metoprolol"), chronic=True),
    Illness("E78", 6, 62, drugs=("atorvastatin",), chronic=True),
    Illness("J44", 4, 70, drugs=("tiotropium", "salbutamol"), chronic=True),
    Illness("J45", 5, 22, drugs=("salbutamol",), chronic=True),
    Illness("F32", 6, 38, "psychiatry", ("sertraline",), chronic=True),
    Illness("F41", 3, 32, "psychiatry", ("sertraline",)),
    Illness("M17", 4, 70, "surgery", ("ibuprofen", "paracetamol"), chronic=True),
    Illness("M54", 8, 48, drugs=("ibuprofen", "paracetamol")),
    Illness("K21", 4, 50, drugs=("omeprazole",)),
    Illness("J18", 3, 66, drugs=("amoxicillin", "paracetamol")),
    Illness("J06", 6, 15, "emergency", ("paracetamol", "ibuprofen")),
    Illness("N39", 4, 55, "emergency", ("nitrofurantoin", "amoxicillin")),
    Illness("G43", 3, 32, "emergency", ("ibuprofen",)),
    Illness("R07", 4, 55, "emergency", ("aspirin",)),
    Illness("S52", 3, 20, "emergency", ("ibuprofen", "paracetamol")),
    Illness("S72", 2, 80, "surgery", ("paracetamol",)),
    Illness("K35", 2, 24, "surgery", ("amoxicillin", "paracetamol")),
    Illness("K80", 2, 55, "surgery", ("ibuprofen",)),
    Illness("H25", 2, 74, "surgery"),
    Illness("Z00", 4, 45),
    # rare: where a list of what occurs would name a patient
    Illness("E84", 0.05, 12, drugs=("salbutamol", "amoxicillin"), chronic=True),
    Illness("D57", 0.05, 25, "emergency", ("ibuprofen",), chronic=True),
    Illness("M32", 0.06, 35, drugs=("ibuprofen",), chronic=True),
    Illness("G35", 0.08, 35, drugs=("ibuprofen",), chronic=True),
    Illness("Q87", 0.02, 10, "surgery", ("ibuprofen",)),
)
_COLUMNS = {
    "patients": ("patient_id", "hospital", "sex", "age", "region"),
    "visits": ("visit_id", "patient_id", "day", "ward", "diagnosis", "cost"),
    "prescriptions": ("prescription_id", "visit_id", "drug", "indication", "dose", "response"),
    "drugs": ("drug", "class"),
}
# log-odds of a response, and the mean of a log cost: what the study and the office should find
_CARE = {"Northgate": 0.3, "Riverside": 0.0, "St. Anne": -0.25}
_LOG_COST = {"emergency": 6.0, "internal": 6.6, "psychiatry": 7.0, "surgery": 8.1}
# how patients of a region choose among the hospitals
_NEAR = {"city": (2, 5, 3), "coast": (6, 2, 1), "hills": (1, 2, 6), "lakes": (4, 3, 2)}


@dataclass(frozen=True, slots=True)
class Patient:
    """A row of ``patients``, and what the visits follow from: how often, and with which lasting illnesses."""

    patient_id: str
    hospital: str
    sex: str
    age: int
    region: str
    visits: int
    chronic: tuple[Illness, ...]

    @property
    def row(self) -> Row:
        """What is written of a patient."""
        return self.patient_id, self.hospital, self.sex, self.age, self.region


def write_hospitals(folder: Path, *, patients: int = PATIENTS, seed: int = SEED) -> dict[str, Path]:
    """Writes the four tables as Parquet into ``folder``; their paths by their names."""
    # made-up data, the same for everyone; nothing private is hidden by it
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
                prescribed = _response(random, patient, drug)
                prescriptions.append((number, visits[-1][0], drug.name, illness.code, *prescribed))
    rows: dict[str, list[Row]] = {
        "patients": [patient.row for patient in people],
        "visits": visits,
        "prescriptions": prescriptions,
        "drugs": [(drug.name, drug.kind) for drug in DRUGS],
    }
    return {
        name: _write(folder / f"{name}.parquet", columns, rows[name])
        for name, columns in _COLUMNS.items()
    }


def _write(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> Path:
    values = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    pyarrow.parquet.write_table(pyarrow.table(values), path)
    return path


def _patient(random: Random, number: int) -> Patient:
    age = (
        random.randrange(18)
        if random.random() < 0.15
        else min(max(round(random.gauss(57, 18)), 18), OLDEST)
    )
    region = random.choices(REGIONS, (5, 3, 2, 2))[0]
    hospital = random.choices(HOSPITALS, _NEAR[region])[0]
    sex = random.choice(SEXES)
    frail = random.gauss(0, 0.5)
    lasting = _poisson(random, 0.1 + age / 55)
    chronic = tuple(_draw(random, age, chronic=True) for _ in range(min(lasting, 3)))
    rate = (0.7 + age / 60 + len(chronic)) * math.exp(frail)
    return Patient(f"P{number:05d}", hospital, sex, age, region, _poisson(random, rate), chronic)


def _illness(random: Random, patient: Patient) -> Illness:
    """What a visit is for: one of the lasting illnesses, or a new one."""
    if patient.chronic and random.random() < 0.7:
        return random.choice(patient.chronic)
    return _draw(random, patient.age, chronic=False)


def _draw(random: Random, age: int, *, chronic: bool) -> Illness:
    """An illness by how common it is around this age."""
    among = [illness for illness in ILLNESSES if illness.chronic or not chronic]
    weights = [
        illness.weight * math.exp(-(((age - illness.age) / 22) ** 2) / 2) + 1e-9
        for illness in among
    ]
    return random.choices(among, weights)[0]


def _visit(random: Random, number: int, patient: Patient, illness: Illness) -> Row:
    day = datetime.date(YEAR, 1, 1) + datetime.timedelta(days=random.randrange(365))
    log_cost = random.gauss(_LOG_COST[illness.ward] + patient.age / 200, 0.6)
    cost = min(round(math.exp(log_cost), 2), DEAREST)
    return f"V{number:06d}", patient.patient_id, day, illness.ward, illness.code, cost


def _prescribed(random: Random, illness: Illness) -> list[Drug]:
    """None, one or two different drugs of those that the illness is treated with."""
    if not illness.drugs or random.random() < 0.08:
        return []
    names = {random.choice(illness.drugs)} | (
        {random.choice(illness.drugs)} if random.random() < 0.3 else set()
    )
    return [_BY_NAME[name] for name in sorted(names)]


def _response(random: Random, patient: Patient, drug: Drug) -> tuple[float, bool | None]:
    """The dose, and whether it helped: not written down one time in eight."""
    dose = min(round(4 * drug.dose * random.choice((0.5, 1, 1, 1, 1.5, 2))) / 4, STRONGEST)
    odds = drug.works + drug.per_decade * (patient.age - 60) / 10 + _CARE[patient.hospital]
    response = None if random.random() < 1 / 8 else random.random() < 1 / (1 + math.exp(-odds))
    return dose, response


def _poisson(random: Random, mean: float) -> int:
    """Knuth's product of uniform numbers; the means here are small."""
    count, product, least = 0, random.random(), math.exp(-mean)
    while product > least:
        count, product = count + 1, product * random.random()
    return count


_BY_NAME: Mapping[str, Drug] = {drug.name: drug for drug in DRUGS}
