# SPDX-License-Identifier: Apache-2.0
"""Turns questions into noisy stored answers, and provides the session that users call.

May import every room below it. Begin with ``pipeline``, which compiles a question into a bounded
plan, and ``charge``, which runs a task of any kind and stores its answer. ``curator`` is the only
module that holds exact integers while a task runs. ``stability`` contains the whole sensitivity
argument. ``release`` (SQL) and ``marginals`` are kinds of question. ``session`` is the user's API.
"""
