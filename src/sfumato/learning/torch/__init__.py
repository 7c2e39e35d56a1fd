# SPDX-License-Identifier: Apache-2.0
"""Networks: an ordinary ``torch.nn.Module`` trained under one charge. Needs the extra ``torch``.

``learning.fit`` takes a ``Network`` as it takes any recipe. May import what ``learning`` may. Begin
with ``network``. ``gradients`` is the statistic, made of the integers of ``layers`` (book-keeping)
or of ``torch.func.vmap``; ``isolation`` checks what their proof needs of a module; ``training`` is
the run, ``network_model`` what comes out.
"""

try:
    import torch as torch
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "sfumato.learning.torch needs PyTorch: pip install 'sfumato[torch]'", name="torch"
    ) from None

from sfumato.learning.torch.adaptive import AdaptiveClip
from sfumato.learning.torch.network import Network
from sfumato.learning.torch.network_model import NetworkModel, load
from sfumato.learning.torch.optimizers import SGD, Adam
from sfumato.learning.torch.oriented_gradients import OrientedGradients
from sfumato.learning.torch.whitening import UnitLength, Whitened, Whitening

__all__ = [
    "SGD",
    "Adam",
    "AdaptiveClip",
    "Network",
    "NetworkModel",
    "OrientedGradients",
    "UnitLength",
    "Whitened",
    "Whitening",
    "load",
]
