"""The error every border raises for bad input."""


class InputError(ValueError):
    """Bad input, said in one sentence: what was given, what is allowed, what to do."""
