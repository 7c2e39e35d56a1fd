# SPDX-License-Identifier: Apache-2.0
"""Networks through a session: charged once, recalled, resumed, refused before the charge."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import EngineFailed, InvalidNumber, WrongUse
from sfumato.learning import FullBatch, Poisson
from sfumato.learning import torch as lt
from sfumato.learning.torch import training as runs
from sfumato.learning.torch.adaptive_training import AdaptivePiece
from sfumato.learning.torch.fingerprint import fingerprint
from sfumato.ledger import Ledger
from sfumato.ledger.verify import verify
from sfumato.noise import NegativeBinomial
from tests.learning.rows import SELECT, connected, frame
from tests.learning.torch.nets import Keeping

BUDGET = sf.Budget(10, "1e-5")
LOSS = nn.CrossEntropyLoss(reduction="none")
COST: dict[str, Any] = {"label": "ill", "epsilon": 2, "delta": "1e-6"}


class Net(nn.Module):
    """Age and pay as numbers, the city as a vector."""

    def __init__(self) -> None:
        super().__init__()
        self.city, self.inner, self.out = nn.Embedding(4, 3), nn.Linear(5, 16), nn.Linear(16, 2)

    def forward(self, x: Any) -> Any:
        city = self.city(x[:, 1].long())
        return self.out(torch.tanh(self.inner(torch.cat([x[:, ::2], city], 1))))


class Waking(nn.Module):
    """Mixes rows once a weight has moved far from its start: no check before the charge sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 2)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Any) -> Any:
        if self.out.weight.abs().max() > 1:
            x = x - x.mean(0)
        return self.out(x)


SEEN: list[Any] = []


def leaking(outputs: Any, labels: Any) -> Any:
    """Brings labels to the caller."""
    SEEN[:] = [labels]
    return LOSS(outputs, labels)


def pairwise(outputs: Any, labels: Any) -> Any:
    """Each row beside all others."""
    signs = (labels[:, None] - labels[None, :]).sign()
    return nn.functional.softplus((outputs[:, 0] - outputs[:, :1]) * signs).mean(1)


class Shown(Net):
    """Keeps rows in its class."""

    seen: ClassVar[list[Any]] = []

    def forward(self, x: Any) -> Any:
        self.seen[:] = [x]
        return super().forward(x)


class Growing(Net):
    """Divides by the largest pay that it ever saw."""

    most = 1e-3

    def forward(self, x: Any) -> Any:
        self.most = max(self.most, float(x[:, 2].max()))
        return super().forward(x) / self.most


class Extra(Net):
    """Has a state that is no number."""

    def get_extra_state(self) -> Any:
        return "a word"

    def set_extra_state(self, state: Any) -> None:
        pass


def recipe(**settings: Any) -> lt.Network:
    torch.manual_seed(3)
    asked: dict[str, Any] = {"steps": 40, "size": 20_000, "clip": "0.5"}
    return lt.Network(Net(), LOSS, lt.SGD(4.0, 0.8), **(asked | settings))


def accuracy(model: lt.NetworkModel, rows: pa.Table) -> float:
    truth = np.array(rows["ill"].to_pylist())
    return float(((model.predict_proba(rows)[:, 1] > 0.5) == truth).mean())


@pytest.mark.parametrize("order", [FullBatch(), Poisson("0.2")])
def test_a_network_learns_is_charged_once_and_recalled_free(tmp_path: Path, order: Any) -> None:
    count = 4_000
    network = recipe(order=order, size=count, steps=30)
    with connected(tmp_path, frame(count), BUDGET) as session:
        model = ln.fit(session, network, SELECT, **COST)
        # the best that the law allows is 83.4%, the larger class 54%
        assert accuracy(model, frame(2000, seed=1)) > 0.7
        spent = session.budget.spent
        assert spent == "2"
        again = ln.fit(session, recipe(order=order, size=count, steps=30), SELECT, **COST)
        assert again.charge == model.charge and session.budget.spent == spent
        for one, two in zip(model.module.parameters(), again.module.parameters(), strict=True):
            assert torch.equal(one, two)
        # the caller's own module stays as it was
        torch.manual_seed(3)
        assert torch.equal(network.module.out.weight, Net().out.weight)  # type: ignore[union-attr]
    assert not verify(Ledger.open(tmp_path / "ledger.db")).problems


def test_a_run_that_dies_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    after = lt.SGD.after

    def dying(self: lt.SGD, state: Any, *gradient: Any) -> Any:
        steps.append(state.released)
        if len(steps) == 6:
            raise RuntimeError("dies")
        return after(self, state, *gradient)

    monkeypatch.setattr(lt.SGD, "after", dying)
    asked = {"steps": 8, "checkpoints": 4, "size": 400}
    with connected(tmp_path, frame(400), BUDGET) as session:
        with pytest.raises(EngineFailed):
            ln.fit(session, recipe(**asked), SELECT, **COST)
        model = ln.fit(session, recipe(**asked), SELECT, **COST)
        assert session.budget.spent == "2"
    # two steps of the third piece are lost, and never drawn again
    assert steps == [0, 1, 2, 3, 4, 5, 4, 5] and model.charge


def test_what_is_refused_costs_nothing(tmp_path: Path) -> None:
    batch = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    with connected(tmp_path, frame(50), BUDGET) as session:
        for network, said in (
            (lt.Network(batch, LOSS, lt.Adam(), size=50), r"1 \(BatchNorm1d\)"),
            (
                lt.Network(nn.Linear(2, 2), LOSS, lt.Adam(), size=50),
                r"\(rows, 3\), and labels that",
            ),
            (lt.Network(Net(), nn.CrossEntropyLoss(), lt.Adam(), size=50), "A loss of shape"),
            (lt.Network(Net().half(), LOSS, lt.Adam(), size=50), "half precision"),
            (lt.Network(Net(), pairwise, lt.Adam(), size=50), "A loss that compares rows"),
            (lt.Network(Net(), leaking, lt.Adam(), size=50), r"Rows move loss\.SEEN"),
            (lt.Network(Growing(), LOSS, lt.Adam(), size=50), "once it has seen other rows"),
            (lt.Network(Extra(), LOSS, lt.Adam(), size=50), "where it is saved and loaded"),
        ):
            with pytest.raises(WrongUse, match=said):
                ln.fit(session, network, SELECT, **COST)
        small, lazy = Net(), nn.LazyLinear(2)
        # a missing city has a place of its own
        small.city = nn.Embedding(3, 3)
        for failing, said in ((small, "IndexError: index out"), (lazy, "ValueError: Attempted")):
            with pytest.raises(WrongUse, match=said):
                ln.fit(session, lt.Network(failing, LOSS, lt.Adam(), size=50), SELECT, **COST)
        with pytest.raises(WrongUse, match="recipe="):
            ln.fit(session, Net(), SELECT, **COST)  # type: ignore[arg-type]
        with pytest.raises(WrongUse, match="pure epsilon"):
            ln.fit(session, recipe(), SELECT, label="ill", epsilon=1)
        for order in (FullBatch(), ln.Cyclic(4)):
            with pytest.raises(InvalidNumber, match="times what one unit adds"):
                ln.fit(session, recipe(order=order), SELECT, label="ill", rho="1e-9")
        assert session.budget.spent == "0"


class Loss:
    """Keeps labels, and counts its calls."""

    last: Any = None
    calls = 0

    def __call__(self, outputs: Any, labels: Any) -> Any:
        self.calls += 1
        self.last = labels
        return LOSS(outputs, labels)


def test_a_model_and_a_loss_keep_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the last rows, nor the number of batches or of runs."""
    module, loss = Keeping(3, 2), Loss()
    network = lt.Network(module, loss, lt.SGD(1e-3), size=300, steps=2, checkpoints=2)
    with connected(tmp_path, frame(300), BUDGET) as session:
        fitted = ln.fit(session, network, SELECT, **COST)
        # a secret number of runs, each with a score
        monkeypatch.setattr(NegativeBinomial, "sample_one", lambda self: 3)
        tuned = ln.tune(session, [network], SELECT, label="ill", rho=1, runs=2).model
        ln.score(session, fitted, SELECT, label="ill", epsilon=1)
        leaking = replace(fitted, module=Shown())
        with pytest.raises(WrongUse, match=r"Rows move module\.Shown\.seen"):
            ln.score(session, leaking, SELECT, label="ill", epsilon=1)
        assert fitted.predict(frame(5)) and tuned.predict(frame(5))
        again = ln.fit(session, network, SELECT, **COST)
    assert (loss.last, loss.calls, module.last, module.calls) == (None, 0, None, 0)
    assert (again.module.last, again.module.calls) == (None, 0)
    # predicted once, with five rows that are the caller's own
    for model in (fitted, tuned):
        assert (len(model.module.last), model.module.calls) == (5, 1)


def test_a_part_in_evaluation_mode_is_another_recipe(tmp_path: Path) -> None:
    part = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).requires_grad_(requires_grad=False)
    module = nn.Sequential(part, nn.Linear(3, 2))
    network = lt.Network(module, LOSS, lt.SGD(0.1), size=300, steps=2, checkpoints=1)
    parts = (module, LOSS, network.optimizer, 300)
    assert network._made_of == fingerprint(*parts)
    # the attribute alone counted before the part was carried out in another way
    part.eval()
    assert network._made_of != fingerprint(*parts)
    with connected(tmp_path, frame(300), BUDGET) as session:
        model = ln.fit(session, network, SELECT, **COST)
        assert len(model.predict(frame(5))) == 5


def test_an_adaptive_clip_is_itemised_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips: list[float] = []
    right = lt.AdaptiveClip.after

    def dying(self: lt.AdaptiveClip, moved: float, within: float) -> float:
        clips.append(moved)
        if len(clips) == 4:
            raise RuntimeError("dies")
        clips[-1:] = [moved, right(self, moved, within)]
        return clips[-1]

    monkeypatch.setattr(lt.AdaptiveClip, "after", dying)
    clip = lt.AdaptiveClip("0.05", share="0.1")
    asked = {"steps": 4, "checkpoints": 4, "size": 400, "clip": clip}
    with connected(tmp_path, frame(400), BUDGET) as session:
        shown = repr(ln.preview(session, recipe(**asked), SELECT, **COST))
        assert "143 numbers" in shown and "of it: count of units within the clip, 1/10 of" in shown
        clips[:] = [0.0]
        with pytest.raises(EngineFailed):
            ln.fit(session, recipe(**asked), SELECT, **COST)
        monkeypatch.setattr(lt.AdaptiveClip, "after", right)
        pieces: list[float] = []
        run = AdaptivePiece.run

        def noted(self: AdaptivePiece, curator: Any) -> bytes:
            pieces.append(self.moved)
            return run(self, curator)

        monkeypatch.setattr(AdaptivePiece, "run", noted)
        model = ln.fit(session, recipe(**asked), SELECT, **COST)
        # the bits of the clip at the last checkpoint
        assert pieces[0] == clips[2] != 1.0 and len(pieces) == 2
        assert session.budget.spent == "2"
        assert "within the clip" in model.cost.items[-1]["release"]
        again = ln.fit(session, recipe(**asked), SELECT, **COST)
        assert again.cost == model.cost and again.charge == model.charge


def test_an_empty_table_trains_on_noise(tmp_path: Path) -> None:
    with connected(tmp_path, frame(0), BUDGET) as session:
        model = ln.fit(session, recipe(steps=2), SELECT, **COST)
        assert len(model.predict(frame(3))) == 3


def test_arguments_that_are_none_are_refused() -> None:
    loader = torch.utils.data.DataLoader([1, 2, 3])
    with pytest.raises(WrongUse, match="Batches are drawn by sfumato"):
        recipe(order=loader)
    for clip in (0, -1, float("nan"), float("inf"), "x"):
        with pytest.raises((InvalidNumber, WrongUse)):
            recipe(clip=clip)
    for order in (ln.Cyclic(20), ln.Cyclic(4)):
        with pytest.raises(WrongUse, match="AdaptiveClip with order=Cyclic"):
            recipe(order=order, clip=lt.AdaptiveClip())
    for settings in ({"size": 0}, {"steps": 0}, {"steps": True}, {"checkpoints": 0}):
        with pytest.raises(WrongUse, match=next(iter(settings))):
            recipe(**settings)
    for rate in (0, "1.5", -1):
        with pytest.raises(WrongUse, match="rate"):
            Poisson(rate)
    with pytest.raises(WrongUse, match="A module on meta"):
        lt.Network(torch.nn.Linear(2, 2, device="meta"), LOSS, lt.SGD(0.1), size=9)
    with pytest.raises(WrongUse, match="without noise"):
        module = Net()
        lt.Network(module, LOSS, torch.optim.SGD(module.parameters()), size=9)  # type: ignore[arg-type]


def test_recipes_that_differ_have_different_hashes(tmp_path: Path) -> None:
    from sfumato.learning.budget import budgeted
    from sfumato.learning.examples_of import Examples

    others = [
        {},
        {"clip": 1},
        # so near that the noise is the same
        {"clip": "0.50000001"},
        {"clip": lt.AdaptiveClip("0.5")},
        {"clip": lt.AdaptiveClip("0.5", rate="0.1")},
        {"clip": lt.AdaptiveClip("0.5", quantile="0.50000001")},
        {"steps": 41},
        {"size": 20_001},
        {"optimizer": lt.Adam()},
        {"loss": nn.CrossEntropyLoss(reduction="none", label_smoothing=0.1)},
        {"module": nn.Sequential(nn.Linear(3, 2))},
    ]
    with connected(tmp_path, frame(5), BUDGET) as session:
        examples = Examples.of(session.dataset, SELECT, "ill")
        budget = budgeted(rho="0.1")
        forms = []
        for other in others:
            made = vars(recipe()) | other
            forms.append(lt.Network(**made).training(examples, budget, [8]).form)  # type: ignore[list-item]
        assert len(set(forms)) == len(others)
        assert recipe().training(examples, budget, [8]).form == forms[0]  # type: ignore[list-item]
        near = [recipe(clip=Fraction(1, 2) + Fraction(1, 10**more)) for more in (15, 16)]
        runs = [each.training(examples, budget, [8]) for each in near]  # type: ignore[list-item]
        assert runs[0].form != runs[1].form and runs[0].event != runs[1].event


def test_a_step_draws_its_noise_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the broken version measures twice: more than was reserved
    run = runs.NetworkPiece.run

    def twice(self: Any, curator: Any) -> bytes:
        run(self, curator)
        return run(self, curator)

    monkeypatch.setattr(runs.NetworkPiece, "run", twice)
    with connected(tmp_path, frame(100), BUDGET) as session, pytest.raises(EngineFailed):
        ln.fit(session, recipe(steps=4, checkpoints=1), SELECT, **COST)


def test_a_network_that_fails_its_check_in_a_tuning_loses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it was run at all is a secret."""
    waking = lt.Network(Waking(), LOSS, lt.SGD(1e5), steps=2, checkpoints=2, size=300)
    monkeypatch.setattr(NegativeBinomial, "sample_one", lambda self: 4)
    places = iter([0, 1, 0, 0])
    monkeypatch.setattr("sfumato.query.curator.below", lambda count, _: next(places))
    recipes = [waking, ln.NaiveBayes(bins=4)]
    tried: list[Any] = []
    checked = lt.Network._checked

    def counted(self: lt.Network, examples: Any) -> Any:
        tried.append(checked(self, examples))
        return tried[-1]

    monkeypatch.setattr(lt.Network, "_checked", counted)
    with connected(tmp_path, frame(300), BUDGET) as session:
        best = ln.tune(session, recipes, SELECT, label="ill", rho=1, runs=2)
        report = session.verify()
    assert best.place == 1 and (report.charges, report.problems) == (1, ())
    # once, for all costs among which the search goes
    assert len(tried) == 1
    assert not caplog.records


class Words(nn.Module):
    """The mean of the embeddings of the buckets of a text."""

    def __init__(self, bag: ln.Bag) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(bag.buckets + 1, 8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.out(self.words(x.long()).mean(1))


def test_an_embedding_learns_from_texts(tmp_path: Path) -> None:
    notes = ["red eye", "left ear", "", None]
    count = 600
    rows = pa.table(
        {
            "note": [notes[each % 4] for each in range(count)],
            "ill": [each % 4 == 0 for each in range(count)],
        }
    )
    columns: dict[str, Any] = {"note": sf.Text(tokens=sf.Tokens()), "ill": sf.Boolean()}
    bag = ln.Bag(32, 4)
    torch.manual_seed(0)
    loss = nn.CrossEntropyLoss(reduction="none")
    network = lt.Network(Words(bag), loss, lt.Adam(0.3), steps=8, size=count, bag=bag)
    with sf.connect(
        {"t": sf.Table(rows, columns=columns)},
        dataset="notes",
        budget=sf.Budget(100, "1e-3"),
        ledger=tmp_path / "ledger.db",
    ) as session:
        statement = "SELECT note, ill FROM t"
        model = ln.fit(session, network, statement, label="ill", rho=2)
        frame = {"note": ["eye red", "ear left", ""]}
        assert model.predict(frame) == ["True", "False", "False"]
        model.save(tmp_path / "ill.sfm")
        loaded = lt.load(tmp_path / "ill.sfm", Words(bag))
        assert loaded.reading == model.reading and loaded.bag == bag
        assert (loaded.predict_proba(frame) == model.predict_proba(frame)).all()
        select = "SELECT ill, note FROM t"
        assert ln.score(session, loaded, select, label="ill", rho=1).accuracy > 0.9


def test_a_loss_of_classes_on_a_number_is_told_how_to_declare_classes(tmp_path: Path) -> None:
    digits = pa.table({"age": [10, 90] * 20, "digit": [0, 1] * 20})
    network = lt.Network(nn.Linear(1, 2), LOSS, lt.SGD(0.1), steps=1, size=40)

    def fitted(kind: Any) -> Any:
        people = sf.Table(digits, columns={"age": sf.Integer(0, 99), "digit": kind})
        ledger = tmp_path / f"{type(kind).__name__}.db"
        with sf.connect({"people": people}, dataset="d", budget=BUDGET, ledger=ledger) as session:
            return ln.fit(
                session,
                network,
                "SELECT age, digit FROM people",
                label="digit",
                epsilon=2,
                delta="1e-6",
            )

    with pytest.raises(WrongUse, match=r'sf\.Category\(\["0", "1"\]\)'):
        fitted(sf.Integer(0, 1))
    assert fitted(sf.Category("0", "1")).classes == ("0", "1")
