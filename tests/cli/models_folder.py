# SPDX-License-Identifier: Apache-2.0
"""A folder with a sfumato.toml that declares models, their rows, and public rows like them."""

import pyarrow.csv as csv

from tests.contracts.shell import Shell
from tests.learning.rows import frame

FILE = """
dataset = "town"
ledger = "l.db"
[budget]
epsilon = "10"
delta = "1e-5"
[tables.people]
source = "people.csv"
columns.age = {type = "integer", lower = 0, upper = 99}
columns.city = {type = "category", values = ["east", "north", "west"]}
columns.pay = {type = "real", lower = 0, upper = 100}
columns.ill = {type = "boolean"}
[models.illness]
recipe = "Additive"
data = "SELECT age, city, ill FROM people"
label = "ill"
rho = "0.5"
steps = 7
[models.bayes]
recipe = "NaiveBayes"
bins = 4
data = "SELECT age, city, ill FROM people"
label = "ill"
epsilon = "2"
public = "public.csv"
epsilons = [8]
folds = 2
[models.groups]
recipe = "KMeans"
clusters = 2
data = "SELECT age, pay FROM people"
rho = "0.2"
"""


def write_models(shell: Shell) -> None:
    """Writes the file and the rows."""
    shell.write("sfumato.toml", FILE)
    csv.write_csv(frame(600), shell.folder / "people.csv")
    csv.write_csv(frame(300, seed=5), shell.folder / "public.csv")
    csv.write_csv(frame(20, seed=7).drop_columns(["ill"]), shell.folder / "new.csv")
