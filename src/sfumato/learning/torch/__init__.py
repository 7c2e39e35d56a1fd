# SPDX-License-Identifier: Apache-2.0
"""Private training of neural networks: any ``torch.nn.Module`` under one charge. Extra ``torch``.

``learning.fit`` takes the recipe ``Network`` (``network``) as any other. The run is in ``training``
(or ``stream`` for cyclic order), the fitted model in ``network_model``. ``gradients`` is the
statistic: clipped gradients of each row, computed by the rules of ``layers`` or by
``torch.func.vmap``. ``isolation`` checks what the privacy proof requires of a module. This room may
import what ``learning`` may.
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
