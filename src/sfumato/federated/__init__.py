# SPDX-License-Identifier: Apache-2.0
"""Several sites, one study: sums over sites that alone can be read, with one curator's noise.

May import: all rooms up to ``config``. Begin with ``round`` (a run as a site sees it), then
``joint`` (how a task becomes one of several sites), ``site``, ``coordinator`` and ``study``.
"""

from sfumato.federated.coordinator import Coordinator
from sfumato.federated.declaration import Declared, read_study
from sfumato.federated.site import Site
from sfumato.federated.study import Study, StudyPreview, open  # noqa: A004

__all__ = ["Coordinator", "Declared", "Site", "Study", "StudyPreview", "open", "read_study"]
