# SPDX-License-Identifier: Apache-2.0
"""What the makers of sfumato run; nothing of it is shipped."""
