# SPDX-License-Identifier: Apache-2.0
"""Published ways in which systems were broken, tried on sfumato and on others.

A file a case; a short function a system, run in the system's own environment. ``make
bench-attacks`` writes docs/attacks.md.
"""
