# SPDX-License-Identifier: Apache-2.0
"""Events: descriptions of what a mechanism did to the data, from which accountants compute cost.

``events``, ``reports``, ``composition`` and ``sampling_designs`` define them, ``serialization``
writes and reads them as JSON. Every name in the ``__all__`` of these five is exported here.
"""

from sfumato.privacy.event.composition import *  # noqa: F403
from sfumato.privacy.event.events import *  # noqa: F403
from sfumato.privacy.event.reports import *  # noqa: F403
from sfumato.privacy.event.sampling_designs import *  # noqa: F403
from sfumato.privacy.event.serialization import *  # noqa: F403
