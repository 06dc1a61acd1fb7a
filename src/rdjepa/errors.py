"""The errors of the package: what a user can correct is raised as one of these, with one sentence that says how."""


class RdjepaError(Exception):
    """Base of every deliberate error; the message reads "expected ..., got ...; do ..."."""


class ArgumentError(RdjepaError, ValueError):
    """An argument, option or name that cannot be used."""


class DataError(RdjepaError, ValueError):
    """Data that cannot be used."""


class OutputError(RdjepaError, OSError):
    """A file or directory that cannot be written; existing files are unchanged."""


class CheckpointError(RdjepaError, ValueError):
    """A checkpoint, run state or forecaster that is missing, damaged, or not of this package."""


class StudyError(RdjepaError, ValueError):
    """A study directory or a plan of cells that cannot be used."""


class InsufficientMemoryError(RdjepaError, MemoryError):
    """More memory is needed than is available; the message says what to lower."""


class SimulationError(RdjepaError, RuntimeError):
    """A trajectory that cannot be simulated: no draw passed the screens."""


class DivergenceError(RdjepaError, FloatingPointError):
    """A loss or gradient that is not finite; the weights are those before that update."""


class Note(UserWarning):
    """What was decided for the user about data that leave a choice; silence it once it is known."""
