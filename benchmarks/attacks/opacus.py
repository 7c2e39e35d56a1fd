# SPDX-License-Identifier: Apache-2.0
"""A step of private training in Opacus, which has no other questions."""

from collections.abc import Sequence


def trained(
    values: Sequence[float], *, clip: float, noise: float, seed: int | None = None
) -> float:
    """Returns the noisy sum of the gradients of one step: each value is the gradient of its row."""
    import torch
    from opacus import PrivacyEngine  # type: ignore[import-not-found]

    rows = torch.utils.data.TensorDataset(torch.tensor(values).reshape(-1, 1))
    loader = torch.utils.data.DataLoader(rows, batch_size=len(values))
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(layer.weight)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=layer,
        optimizer=torch.optim.SGD(layer.parameters(), lr=1.0),
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=clip,
        poisson_sampling=False,
        loss_reduction="sum",
    )
    if seed is not None:
        torch.manual_seed(seed)
    for (batch,) in loader:
        model(batch).sum().backward()
        optimizer.step()
    return -float(layer.weight.item())
