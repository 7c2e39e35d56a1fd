# SPDX-License-Identifier: Apache-2.0
"""Networks: an ordinary ``torch.nn.Module`` trained under one charge. Needs the extra ``torch``.

May import what ``learning`` may. Begin with ``network``. ``gradients`` is the statistic, made of
the integers of ``layers`` (book-keeping) or ``materialised`` (``torch.func.vmap``); ``isolation``
checks what their proof needs of a module; ``training`` is the run.
"""

from sfumato.learning.torch.fit import fit
from sfumato.learning.torch.network import Network
from sfumato.learning.torch.network_model import NetworkModel
from sfumato.learning.torch.optimizers import SGD, Adam

__all__ = ["SGD", "Adam", "Network", "NetworkModel", "fit"]
