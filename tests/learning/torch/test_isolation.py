# SPDX-License-Identifier: Apache-2.0
"""Networks that mix rows are refused by the name of the layer; those that do not are taken."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import nn

import sfumato as sf
import sfumato.learning as ln
import sfumato.learning.torch as lt
from sfumato.errors import WrongUse
from sfumato.learning.torch import device, gradients, isolation
from sfumato.learning.torch.isolation import (
    require_forgetful,
    require_isolated,
    require_isolated_elsewhere,
    require_outputs_apart,
)
from sfumato.learning.torch.recorded import Recorded
from tests.learning.torch.nets import (
    CLASSES,
    LOSS,
    READING,
    RULED,
    UNRULED,
    WIDTH,
    Centred,
    Keeping,
    Recurrent,
    Shaped,
    linear,
    sums,
)


class Shuffled(nn.Module):
    """A part of the gradient of a row comes from the row before it."""

    def forward(self, x: Any) -> Any:
        return x + 1e-6 * x.detach().roll(1, 0)


class Counting(nn.Module):
    """Keeps the sum of what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))
        self.out = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Any) -> Any:
        self.seen += x.detach().sum()
        return self.out(x)


class Writing(nn.Module):
    """Writes rows into a parameter that is frozen, or into a new buffer."""

    def __init__(self, *, new: bool = False) -> None:
        super().__init__()
        self.new, self.out = new, nn.Linear(WIDTH, CLASSES)
        self.tail = nn.Parameter(torch.zeros(3), requires_grad=False)

    def forward(self, x: Any) -> Any:
        if self.new:
            self.register_buffer("row", x.detach()[0])
        else:
            with torch.no_grad():
                self.tail.copy_(x[:3, 0])
        return self.out(x)


class Backwards(Counting):
    """Keeps the sum of what its gradients are."""

    def forward(self, x: Any) -> Any:
        found = self.out(x)
        if found.requires_grad:
            found.register_hook(self.keep)
        return found

    def keep(self, gradient: Any) -> None:
        self.seen += gradient.abs().sum()


class Fused(nn.Module):
    """Goes another way where nothing is noted, as torch's fused kernels do."""

    def forward(self, x: Any) -> Any:
        return x if self._forward_hooks else x - x[5]


class Largest(nn.Module):
    """Divides by the largest number that it ever saw."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.most = nn.Linear(WIDTH, CLASSES), 1e-3

    def forward(self, x: Any) -> Any:
        self.most = max(self.most, float(x.detach().max()))
        return self.out(x / self.most)


class Averaging:
    """A loss that is divided by the mean of the batches before."""

    mean = 1.0

    def __call__(self, outputs: Any, labels: Any) -> Any:
        losses = LOSS(outputs, labels)
        found, self.mean = losses / self.mean, float(losses.detach().mean())
        return found


class Trimmed(nn.Module):
    """Cuts texts to the longest one of the batch, and takes means over what is left."""

    def __init__(self, *, left: bool = False, padding: int = 0) -> None:
        super().__init__()
        self.left, self.padding = left, padding
        self.words, self.out = nn.Embedding(10, 4), nn.Linear(4, CLASSES)

    def forward(self, x: Any) -> Any:
        texts = (x.flip(1) if self.left else x).mul(9).long()
        used = (texts != self.padding).any(0)
        length = max(int(used.nonzero().max()) + 1, 1) if used.any() else 1
        return self.out(torch.tanh(self.words(texts[:, :length])).mean(1))


class Hidden(nn.Module):
    """Mixes rows between two layers whose weights begin as 0."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.out = nn.Linear(WIDTH, 5), nn.Linear(5, CLASSES)
        nn.init.zeros_(self.inner.weight)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Any) -> Any:
        inner = self.inner(x)
        return self.out(inner - inner.mean(0))


def dropping() -> nn.Module:
    return Recurrent(nn.GRU(3, 5, 2, batch_first=True, dropout=0.5))


def renormalised() -> nn.Module:
    """A frozen table whose rows are shortened when they are read."""
    table = nn.Embedding.from_pretrained(torch.ones(11, 2), freeze=True, max_norm=1.0)
    return nn.Sequential(Shaped(WIDTH, tokens=True), table, nn.Flatten(), nn.Linear(24, CLASSES))


def pairwise(outputs: Any, labels: Any) -> Any:
    """A loss of ranking: each row beside all others."""
    scores, signs = outputs[:, :1], (labels[:, None] - labels[None, :]).sign()
    return nn.functional.softplus((scores.T - scores) * signs).mean(1)


def mean_loss(outputs: Any, labels: Any) -> Any:
    losses = nn.functional.cross_entropy(outputs, labels, reduction="none")
    return losses * losses.detach().mean()


@pytest.mark.parametrize("make", [*RULED.values(), *UNRULED.values()])
def test_a_network_that_treats_each_row_by_itself_is_taken(make: Any) -> None:
    require_isolated(sums(make(), whole=make in UNRULED.values()))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: nn.Sequential(linear(), nn.BatchNorm1d(CLASSES)), r"1 \(BatchNorm1d\)"),
        (Centred, r"the module \(Centred\)"),
        (lambda: nn.Sequential(Shuffled(), linear()), r"0 \(Shuffled\)"),
        (Counting, "the buffer seen"),
        (Writing, "the parameter tail"),
        (lambda: Writing(new=True), "the buffer row"),
        (renormalised, r"the parameter 1\.weight"),
        (lambda: nn.Sequential(nn.Dropout(0.5), linear()), r"0 \(Dropout\) returns another"),
        (dropping, r"layer \(GRU\) returns another"),
    ],
)
def test_a_network_that_mixes_rows_is_refused(make: Any, name: str, whole: bool) -> None:
    with pytest.raises(WrongUse, match=name):
        require_isolated(sums(make(), whole=whole))


@pytest.mark.parametrize("settings", [{}, {"left": True}, {"padding": 9}])
def test_a_network_that_cuts_rows_to_the_longest_is_refused(settings: Any) -> None:
    with pytest.raises(WrongUse, match=r"the module \(Trimmed\)"):
        require_isolated(sums(Trimmed(**settings)))


def test_what_mixes_rows_only_at_other_weights_is_refused() -> None:
    hidden = sums(Hidden())
    # at the weights of the start nothing tells
    require_isolated(hidden)
    with pytest.raises(WrongUse, match=r"the module \(Hidden\)"):
        require_isolated_elsewhere(hidden)
    taken = sums(linear())
    require_isolated_elsewhere(taken)
    assert (taken.network.weights == taken.network.start).all()


def test_the_remedy_of_batch_norm_is_group_norm() -> None:
    with pytest.raises(WrongUse, match=r"nn\.GroupNorm"):
        require_isolated(sums(nn.Sequential(nn.BatchNorm1d(WIDTH), linear())))


def test_a_loss_over_the_batch_is_refused() -> None:
    with pytest.raises(WrongUse, match="A loss of shape"):
        require_isolated(sums(linear(), loss=nn.CrossEntropyLoss()))
    with pytest.raises(WrongUse, match="the loss or a gradient"):
        require_isolated(sums(linear(), loss=mean_loss))


def test_half_precision_is_refused_until_it_is_float() -> None:
    for module in (linear().half(), linear().bfloat16()):
        with pytest.raises(WrongUse, match=r"in half precision[\s\S]*module\.float\(\)"):
            require_isolated(sums(module))
        require_isolated(sums(module.float()))


def test_nothing_to_train_is_refused_until_it_may_be_trained() -> None:
    with pytest.raises(WrongUse, match="no parameter to train"):
        require_isolated(sums(nn.ReLU()))
    module = linear().requires_grad_(False)
    with pytest.raises(WrongUse, match=r"no parameter to train[\s\S]*requires_grad_\(\)"):
        require_isolated(sums(module))
    require_isolated(sums(module.requires_grad_()))


def test_spectral_norm_is_refused_and_weight_norm_taken_as_the_refusal_advises() -> None:
    norms = nn.utils.parametrizations
    layer = nn.Linear(12, 3)
    # two singular values so near that no power iteration ends by itself
    layer.weight.data = torch.diag(torch.tensor([1.0, 0.99, 0.5])) @ torch.eye(3, 12)
    with pytest.raises(WrongUse, match="weight_norm instead of spectral_norm"):
        require_isolated(sums(nn.Sequential(norms.spectral_norm(layer))))
    module = nn.Sequential(norms.weight_norm(nn.Linear(1, 2)))
    recipe = lt.Network(module, LOSS, lt.SGD(0.1), steps=1, size=20_000)
    with sf.examples.people() as session:
        sql = "SELECT AGEP, SEX FROM people"
        model = ln.fit(session, recipe, sql, label="SEX", epsilon="0.5", delta="1e-7")
    assert model.predict({"AGEP": [30]})[0] in ("male", "female")


def test_without_the_check_of_layers_the_gradients_still_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolation, "_require_layers", lambda *_: None)
    with pytest.raises(WrongUse, match="the loss or a gradient"):
        require_isolated(
            sums(
                nn.Sequential(
                    nn.BatchNorm1d(WIDTH, affine=False, track_running_stats=False), linear()
                )
            )
        )


def test_what_a_backward_pass_writes_is_refused() -> None:
    with pytest.raises(WrongUse, match="the buffer seen"):
        require_isolated(sums(Backwards()))


def test_without_a_look_at_parameters_rows_are_written_into_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolation, "_state", lambda _: ())
    for make in (Writing, renormalised, Counting):
        require_isolated(sums(make()))


def test_a_network_that_remembers_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 64
    cases = ((Largest, LOSS, r"the module \(Largest\)|out"), (linear, Averaging(), "the loss"))
    for make, loss, name in cases:
        network = sums(make(), loss=loss).network
        network.loss(network.module(READING.drawn(rows, 5)[0]), READING.drawn(rows, 5)[1])
        with pytest.raises(WrongUse, match=f"({name}) .*returns another output once"):
            require_forgetful(network, READING, rows)
    with pytest.raises(WrongUse, match="once it has seen other rows"):
        require_outputs_apart(sums(Largest()).network, READING, rows)
    with pytest.raises(WrongUse, match="which depends on other rows"):
        require_outputs_apart(sums(nn.Sequential(Fused(), linear())).network, READING, rows)
    # what is kept and never read again is taken
    require_outputs_apart(sums(Keeping()).network, READING, rows)
    # the mutant compares a network with itself
    network = sums(Largest()).network
    monkeypatch.setattr(network, "renew", lambda: None)
    require_outputs_apart(network, READING, rows)


def test_a_piece_is_checked_as_if_no_row_was_seen() -> None:
    """What is refused hangs on released weights alone."""
    poisoned = sums(Largest())
    poisoned.network.module.most = 0.5  # type: ignore[assignment]
    require_isolated(poisoned)
    assert poisoned.network.module.most != 0.5


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    "loss", [pairwise, mean_loss, lambda outputs, labels: LOSS(outputs, labels) / len(outputs)]
)
def test_a_loss_that_compares_rows_is_refused(loss: Any, whole: bool) -> None:
    # at weights of zero all rows are equal
    module = nn.Linear(WIDTH, CLASSES)
    nn.init.zeros_(module.weight)
    with pytest.raises(WrongUse, match="A loss that compares rows"):
        require_isolated_elsewhere(sums(module, whole=whole, loss=loss))


def test_without_a_look_at_rows_alone_a_loss_compares_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_require_losses_alone", lambda *_: None)
    require_isolated_elsewhere(sums(linear(), whole=True, loss=pairwise))


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(reduction="none", label_smoothing=0.1, weight=torch.rand(CLASSES)),
        lambda outputs, labels: nn.functional.mse_loss(
            outputs, nn.functional.one_hot(labels, CLASSES).float(), reduction="none"
        ).sum(1),
        lambda outputs, labels: nn.functional.multi_margin_loss(outputs, labels, reduction="none"),
        # writes into what it is given
        lambda outputs, labels: LOSS(outputs.mul_(1000), labels),
    ],
)
def test_ordinary_losses_are_taken(loss: Any) -> None:
    require_isolated_elsewhere(sums(linear(), loss=loss))


def normalised() -> Any:
    return nn.Sequential(nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Dropout(0.1))


def encoded() -> Any:
    layer = nn.TransformerEncoderLayer(4, 2, 16, batch_first=True)
    return nn.Sequential(Shaped(3, 4), layer, nn.Flatten())


def layered() -> Any:
    layer = nn.TransformerEncoderLayer(4, 2, 4, batch_first=True)
    return nn.Sequential(Shaped(3, 4), nn.TransformerEncoder(layer, 1), nn.Flatten())


@pytest.mark.parametrize("make", [normalised, encoded, layered])
def test_what_is_frozen_in_evaluation_mode_is_taken(make: Any) -> None:
    part = make().requires_grad_(False)
    with pytest.raises(WrongUse, match=r"part\.requires_grad_\(False\)\.eval\(\)"):
        require_isolated(sums(nn.Sequential(part, linear())))
    part.eval()
    require_isolated(sums(nn.Sequential(part, linear())))
    # in the middle, where a gradient goes through it
    require_isolated(sums(nn.Sequential(nn.Linear(WIDTH, WIDTH), part, linear())))
    require_outputs_apart(sums(nn.Sequential(part, linear())).network, READING, 64)


def test_a_frozen_part_in_evaluation_mode_is_taken_where_gradients_are_whole() -> None:
    part = encoded().requires_grad_(False).eval()
    require_isolated(sums(nn.Sequential(part, nn.Linear(WIDTH, CLASSES)), whole=True))


ACTIVATIONS = (nn.ELU(), nn.SiLU(), nn.Sigmoid(), nn.Softplus(), nn.Mish(), nn.GELU(), nn.Tanh())


@pytest.fixture(params=[1, 3, 8])
def threads(request: pytest.FixtureRequest) -> Any:
    """The number of torch's threads during a test."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def activated(width: int, layer: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, width), layer, nn.Linear(width, CLASSES))


@pytest.mark.parametrize("width", [1, 257, 1025])
def test_stock_activations_of_any_width_are_taken_on_any_number_of_threads(
    threads: int, width: int
) -> None:
    for layer in ACTIVATIONS:
        require_outputs_apart(Recorded(activated(width, layer), LOSS), READING, 256)
    require_isolated(sums(activated(width, nn.SiLU())))


def test_units_with_several_rows_are_taken_on_any_number_of_threads(threads: int) -> None:
    require_isolated(sums(activated(257, nn.SiLU()), most=2))


def test_rows_that_are_cut_by_numbers_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    # a mutant that leaves torch all its threads
    monkeypatch.setattr(device, "_MOST_THREADS", 64)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with pytest.raises(WrongUse, match="Rows are mixed"):
            require_outputs_apart(Recorded(activated(1024, nn.SiLU()), LOSS), READING, 256)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("size", [1, 10**5, 10**6, 10**8])
def test_chunks_are_whole_pieces_of_two_threads(size: int) -> None:
    statistic = sums(linear(), most=2)
    lattice = gradients.lattice_for(size, statistic.lattice.clip, Fraction(1))
    assert replace(statistic, lattice=lattice).rows in (64, 128, 192, 256)
