"""Readers of a user's own data; the kind of a source is recognized by its content and never by its name.

`load` is the only road to trajectories; `registry` lists the formats, each of which yields recordings.
"""

from rdjepa.data.readers.loading import OTHER_INTERVAL as OTHER_INTERVAL
from rdjepa.data.readers.loading import interval_of as interval_of
from rdjepa.data.readers.loading import load as load
from rdjepa.data.readers.loading import trajectories as trajectories
from rdjepa.data.readers.reading import Reading as Reading
from rdjepa.data.readers.registry import KNOWN as KNOWN
from rdjepa.data.readers.registry import recordings as recordings
