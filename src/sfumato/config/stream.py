# SPDX-License-Identifier: Apache-2.0
"""Reads the section ``[streams.NAME]`` of a ``sfumato.toml``, for ``sfumato stream``."""

from sfumato.config.cost import COST
from sfumato.config.load import read_declarations
from sfumato.config.section import Key, as_is, read, stated, whole
from sfumato.errors import UnknownName, shown
from sfumato.metadata.dataset import Dataset
from sfumato.synopsis.stream_plan import StreamPlan, Windows, plan_stream

# What stands for a stream that has no end.
_ENDLESS = "none"
STREAM = (
    Key("table", as_is, '"trips"', "the table whose rows are counted"),
    Key("time", as_is, '"day"', "the column of the time"),
    Key("horizon", as_is, "365", 'the number of ticks, or "none"'),
    Key("by", as_is, '["line"]', "the columns by which rows are counted", None),
    *COST,
    Key("participations", as_is, "12", "in how many ticks the rows of a unit count", None),
    Key("separation", as_is, "7", "how many ticks later they count again", None),
    Key("rows", as_is, "1", "how many rows of a unit count in a tick", None),
    Key("where", as_is, "\"line = 'A'\"", "the rows that count", None),
    Key("window", whole, "7", "the ticks of the windows that are asked for most", None),
)


def read_stream(dataset: Dataset, path: str, name: str) -> StreamPlan:
    """Returns the planned continual release (stream) that a file declares under a name.

    Raises:
        UnknownName: the file has no such stream.
        InvalidConfig: a key is unknown or missing, or has a wrong value.
        Others as ``plan_stream``.
    """
    declared = read_declarations(path).streams
    if name not in declared:
        known = ", ".join(declared) or "none: declare [streams.NAME]"
        raise UnknownName(f"No stream {shown(name)}.", allowed=known)
    form = stated(read(declared[name], f"streams.{name}", STREAM))
    if form["horizon"] == _ENDLESS:
        form["horizon"] = None
    if "window" in form:
        form["wanted"] = Windows(form.pop("window"))
    return plan_stream(dataset, form.pop("table"), **form)
