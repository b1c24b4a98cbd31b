"""What can go wrong with a lab, in words for the person at the keyboard."""


class LabError(Exception):
    """The lab cannot do what was asked; the message is one line that says why and what helps."""


class BadFlagError(LabError):
    """A flag says what cannot be; the message begins with the flag."""
