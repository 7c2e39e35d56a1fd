# SPDX-License-Identifier: Apache-2.0
"""An analyst of a statistics office, with a wheel, a CSV in GBK and a codebook: six commands and one
edited file lead to the first published tables.
"""

import csv
import os
import random
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from tests.architecture.structure import ROOT
from tests.journeys.person import Person

PROVINCES = ("北京", "上海", "广东", "四川")
SCHOOLS = ("小学", "初中", "高中", "大学")
ITEMS = [f"题{place}" for place in range(1, 18)]
BOOK = """\
变量,取值
编号,text
省份,北京=北京; 上海=上海; 广东=广东; 四川=四川
性别,男=男; 女=女
年龄,15..110
教育,小学=小学; 初中=初中; 高中=高中; 大学=大学
收入,0..1000000
收入,-9=missing
调查日期,2026-01-01..2026-12-31
"""
QUESTIONS = """\
title = "2026 年调查"
epsilon = "1"
[questions.people]
title = "人数"
sql = "SELECT 省份, COUNT(*) AS 人数 FROM 调查 GROUP BY 省份"
[questions.income]
title = "平均收入"
sql = "SELECT 省份, 性别, AVG(收入) AS 收入 FROM 调查 GROUP BY 省份, 性别"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a stranger installs it: unpacked from a wheel, outside the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "-w", str(folder), str(ROOT)],
        check=True, capture_output=True,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def survey(path: Path) -> Counter[str]:
    """4,000 made-up persons with 24 columns in GBK, as a database of an office exports them."""
    made = random.Random(1)
    counted: Counter[str] = Counter()
    with path.open("w", encoding="gbk", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["编号", "省份", "性别", "年龄", "教育", "收入", "调查日期", *ITEMS])
        for place in range(4000):
            province = made.choice(PROVINCES)
            counted[province] += 1
            income = made.randint(0, 30) * 1000 if made.random() > 0.05 else -9
            day = f"2026-0{made.randint(1, 9)}-1{made.randint(0, 9)}"
            person = [f"P{place:05d}", province, made.choice("男女"), made.randint(15, 95)]
            answers = [made.choice([1, 2, 3, 4, 5, 9]) for _ in ITEMS]
            rows.writerow([*person, made.choice(SCHOOLS), income, day, *answers])
    return counted


def edited(text: str) -> str:
    """What the person decides: the whole budget, and that each row is another person."""
    text = text.replace('epsilon = "?"', 'epsilon = "2"')
    before, unit, after = text.partition('[tables."调查".unit]')
    assert unit and "Then delete this section" in after
    return before + after[after.index("[tables.") :]


def test_six_commands_lead_from_a_csv_in_gbk_to_published_tables(
    tmp_path: Path, wheel: Path
) -> None:
    counted = survey(tmp_path / "调查.csv")
    scale = "".join(f"{item},1=很好; 2=好; 3=一般; 4=差; 5=很差; 9=missing\n" for item in ITEMS)
    (tmp_path / "码本.csv").write_text(BOOK + scale, encoding="utf-8")
    person = Person(tmp_path, wheel)
    assert wheel in person.imports_from().parents

    said = person.types("init", "调查.csv", "--codebook", "码本.csv", "--dataset", "survey-2026")
    assert "24 columns" in said
    declarations = tmp_path / "sfumato.toml"
    declarations.write_text(edited(declarations.read_text("utf-8")), encoding="utf-8")
    said = person.types("check", "--data")
    assert "调查" in said and "not read" in said and "still open" not in said
    (tmp_path / "tables.toml").write_text(QUESTIONS, encoding="utf-8")
    said = person.types("publish", "tables.toml", "--plan")
    assert "nothing was charged" in said and "人数" in said
    said = person.types("publish", "tables.toml", "--yes", "-o", "out")
    assert "wrote out/index.html" in said.replace(os.sep, "/")
    assert person.typed <= 6

    with (tmp_path / "out" / "people.csv").open(encoding="utf-8", newline="") as file:
        published = {row["省份"]: row for row in csv.DictReader(file)}
    assert list(published) == list(PROVINCES)
    for province, row in published.items():
        assert float(row["人数_low"]) < float(row["人数"]) < float(row["人数_high"])
        # a scale of 2: farther off than 50 with probability e^-25 a cell
        assert abs(float(row["人数"]) - counted[province]) < 50
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "2026 年调查" in page and "平均收入" in page and page.count("<svg") == 2
    assert "epsilon up to 1" in person.types("budget", "--details")
