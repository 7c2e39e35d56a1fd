# SPDX-License-Identifier: Apache-2.0
"""Without PyTorch the tests of networks are not collected; ``test_required`` says so.

With it they run on one thread: beside other tests its threads wait for each other, busily.
"""

import os
from importlib.util import find_spec
from pathlib import Path

# before torch meets a GPU, if there is one
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

_HERE = Path(__file__).parent
_ALWAYS = ("conftest.py", "test_required.py")
collect_ignore = [
    path.name
    for path in _HERE.glob("*.py")
    if find_spec("torch") is None and path.name not in _ALWAYS
]
if find_spec("torch") is not None:
    import torch

    torch.set_num_threads(1)
