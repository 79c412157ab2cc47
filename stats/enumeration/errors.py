"""What can go wrong when a program's law is enumerated; each message says what to do."""


class EnumerationError(Exception):
    """The law of a program can't be enumerated."""


class UndecidableError(EnumerationError):
    """A random number is used in a way that has no exact probability here.

    Names the operation and the place, and suggests to probe or to sample.
    """


class NotRepeatableError(EnumerationError):
    """The same choices led to something else: the program keeps state, or draws from where nobody looks."""


class VoidLawError(EnumerationError):
    """The probabilities of all paths don't sum to one, so none of them can be trusted."""


class CutShort(BaseException):
    """Ends a run from inside, past every ``except Exception`` of the program."""


class Merged(CutShort):
    """What is left of this run is known from another one."""


class TooLong(CutShort):
    """The run has made more choices than any path may have."""


class Refused(CutShort):
    """The run has done what can't be decided; the tape knows the error."""
