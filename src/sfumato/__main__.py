# SPDX-License-Identifier: Apache-2.0
"""``python -m sfumato``: the same as the command ``sfumato``."""

from sfumato.cli.main import main

if __name__ == "__main__":
    main()
