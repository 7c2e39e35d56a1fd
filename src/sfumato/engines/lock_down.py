# SPDX-License-Identifier: Apache-2.0
"""The settings that keep DuckDB to its memory and to the declared files."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from sfumato.engines.duckdb_printer import text
from sfumato.engines.local import Local


def set_limits(connection: duckdb.DuckDBPyConnection, limits: Local) -> None:
    """Sets how much memory and how many threads a connection may use."""
    if limits.memory_limit is not None:
        connection.execute(f"SET memory_limit = {text(limits.memory_limit)}")
    if limits.threads is not None:
        connection.execute(f"SET threads = {limits.threads}")


def lock_down(
    connection: duckdb.DuckDBPyConnection,
    spill: str,
    files: Sequence[Path],
) -> None:
    """Restricts a DuckDB connection for good: it can read these files, write into its spill folder,
    and access nothing else.
    """
    paths = ", ".join(text(str(file)) for file in files)
    for setting in (
        f"SET temp_directory = {text(spill)}",
        f"SET allowed_paths = [{paths}]",
        f"SET allowed_directories = [{text(spill)}]",
        "SET autoinstall_known_extensions = false",
        "SET autoload_known_extensions = false",
        "SET allow_community_extensions = false",
        "SET enable_external_access = false",
        # declared files are local, and the operating system prefetches them already
        "SET disable_parquet_prefetching = true",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)
