"""The tree of errors; each message is a sentence with the value, the place and the next step.

TocsinError
├── InputError            input cannot be read
│   ├── UnitError         a duration, an amount of memory, an id, an instant
│   ├── NodeListError     a list of nodes
│   ├── SourceError       a log, a table, a reply
│   └── ScriptError       a job script
├── SettingsError         a setting is unknown, of the wrong type or unsafe
├── StoreError            the store cannot be opened, is locked, or is of another version
├── ModelError            a model was changed, is missing, or cannot be used
├── ClusterError          Slurm did not answer, or refused
├── SinkError             a sink did not take a message
├── Unavailable           the service cannot answer now, and will again
├── Unauthenticated       the service does not know who is asking
├── Forbidden             the service knows, and refuses
└── NotFound              there is no such job, model, cluster or file
"""

__all__ = [
    "ClusterError",
    "Forbidden",
    "InputError",
    "ModelError",
    "NodeListError",
    "NotFound",
    "ScriptError",
    "SettingsError",
    "SinkError",
    "SourceError",
    "StoreError",
    "TocsinError",
    "Unauthenticated",
    "Unavailable",
    "UnitError",
]


class TocsinError(Exception):
    """An error that a person can act on; its text is shown as it is."""


class InputError(TocsinError):
    """Input cannot be read."""


class UnitError(InputError):
    """A duration, an amount of memory, an id or an instant is malformed."""


class NodeListError(InputError):
    """A list of nodes is malformed or too long."""


class SourceError(InputError):
    """A log, a table or a reply cannot be read."""


class ScriptError(InputError):
    """A job script cannot be read."""


class SettingsError(TocsinError):
    """A setting is unknown, of the wrong type or unsafe."""


class StoreError(TocsinError):
    """The store cannot be opened, is locked, or is of another version."""


class ModelError(TocsinError):
    """A model was changed, is missing, or cannot be used."""


class ClusterError(TocsinError):
    """Slurm did not answer, or refused."""


class SinkError(TocsinError):
    """A sink did not take a message."""


class Unavailable(TocsinError):
    """The service cannot answer now, and will again."""


class Unauthenticated(TocsinError):
    """The service does not know who is asking: no credential, or one that does not hold."""


class Forbidden(TocsinError):
    """The service knows who is asking, and that this is not allowed to them."""


class NotFound(TocsinError):
    """There is no such job, model, cluster or file."""
