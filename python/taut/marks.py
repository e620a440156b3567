"""Marks around a stretch of code."""

from types import TracebackType

from taut._taut import begin, end


class work:
    """Work that is not a message's, from here to the end of the block: `with taut.work("plan"): …`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        begin(self.name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        end(self.name)
