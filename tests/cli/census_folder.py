# SPDX-License-Identifier: Apache-2.0
"""A folder with a census in its sfumato.toml."""

from pathlib import Path

CENSUS = """\
[census.residents]
table = "people"
spine = "spine.csv"
levels = "state > county"
rho = "0.5"
weights = {county = 2}
zeros = [{group = ["young"], sex = ["F"]}]
public_totals = {state = {A = 9}}
[census.residents.recodes]
group = "CASE WHEN age < 15 THEN 'young' ELSE 'grown' END"
[census.residents.tables]
state = [["group", "sex"], []]
county = ["sex"]
"""
_CONFIG = """\
dataset = "town"
ledger = "ledger.db"
[budget]
epsilon = "1000000"
delta = "1e-6"
[tables.people]
source = "people.csv"
columns.age = {type = "integer", lower = 0, upper = 99}
columns.sex = {type = "category", values = ["F", "M"]}
columns.county = {type = "category", values = ["a1", "a2", "b1"]}
"""


def write_folder(folder: Path, census: str = CENSUS) -> Path:
    """Writes the data, the spine and the configuration; returns the path of the latter."""
    rows = [f"{20 + n},{'FM'[n % 2]},{('a1', 'a2', 'b1')[n % 3]}" for n in range(12)]
    (folder / "people.csv").write_text("\n".join(["age,sex,county", *rows]))
    (folder / "spine.csv").write_text("state,county\nA,a1\nA,a2\nB,b1\n")
    path = folder / "sfumato.toml"
    path.write_text(_CONFIG + census)
    return path
