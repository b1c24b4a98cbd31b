"""An attribute that is worked out when it is first asked for, and kept."""

from collections.abc import Callable
from typing import Generic, Self, TypeVar, overload

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class Once(Generic[Owner, Value]):
    """Python's own cached property without its lock, which takes longer than most of what is kept.

    For what follows from an object that never changes: two threads that ask at once may both work
    it out, and find the same.
    """

    def __init__(self, make: Callable[[Owner], Value]) -> None:
        self._make = make
        self._name = ""
        self.__doc__ = make.__doc__

    def __set_name__(self, _owner: type[Owner], name: str) -> None:
        """Learn under which name to keep it."""
        self._name = name

    @overload
    def __get__(self, instance: None, _owner: type[Owner]) -> Self: ...

    @overload
    def __get__(self, instance: Owner, _owner: type[Owner]) -> Value: ...

    def __get__(self, instance: Owner | None, _owner: type[Owner]) -> Self | Value:
        """Work it out, and put it where Python looks before it comes here again."""
        if instance is None:
            return self
        found = instance.__dict__[self._name] = self._make(instance)
        return found
