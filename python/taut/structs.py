"""A dataclass as telemetry: what its values are, found once by walking one of its objects, and how they come into a row.

A field's type is its annotation: bool, int (64 bits), float, a numpy number such as np.float32, an IntEnum (32 bits, and its names
become constants), another dataclass, a numpy array, or a list or tuple of one of these. `Annotated[float, "rad"]` gives a unit,
`Annotated[bytes, 16]` a length. Lists and arrays keep the length that they have in the object.
"""

import dataclasses
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

NUMBERS: dict[type, str] = {bool: "?", int: "i8", float: "f8"}
# As `struct` calls what numpy calls so.
FORMATS = {
    "b1": "?",
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
    "f4": "f",
    "f8": "d",
}


class Layout:
    """The values of a dataclass's object, packed one behind the other."""

    def __init__(self, value: object) -> None:
        self.units: dict[str, str] = {}
        self.constants: dict[str, type[IntEnum]] = {}
        self._format: list[str] = ["<"]
        # Expressions over the object `o`: of numbers in their order, and of arrays with their place in the row.
        self._numbers: list[str] = []
        self._arrays: list[tuple[str, tuple[str | int, ...]]] = []
        self.dtype = np.dtype(self._struct(value, "o", "", ()))

    def filler(self, value: object, row: npt.NDArray[Any]) -> Callable[[], None]:
        """What copies the object's values into the row. Fields' names are identifiers, so that nothing else is evaluated."""
        pack = struct.Struct("".join(self._format)).pack_into
        buffer = row.reshape(1).view(np.uint8).data
        numbers: Callable[[object], tuple[Any, ...]] = eval(_tuple(self._numbers))
        if not self._arrays:
            return lambda: pack(buffer, 0, *numbers(value))
        arrays: Callable[[object], tuple[Any, ...]] = eval(_tuple([expression for expression, _ in self._arrays]))
        targets = [_within(row, place) for _, place in self._arrays]

        def fill() -> None:
            pack(buffer, 0, *numbers(value))
            for target, array in zip(targets, arrays(value), strict=True):
                target[...] = array

        return fill

    def _struct(self, value: Any, source: str, path: str, place: tuple[str | int, ...]) -> list[tuple[Any, ...]]:
        hints = get_type_hints(type(value), include_extras=True)
        return [
            (
                f.name,
                *self._field(
                    getattr(value, f.name), hints[f.name], f"{source}.{f.name}", path + f.name, (*place, f.name)
                ),
            )
            for f in dataclasses.fields(value)
        ]

    def _field(self, value: Any, kind: Any, source: str, path: str, place: tuple[str | int, ...]) -> tuple[Any, ...]:
        """A field's dtype, and its shape if it has one."""
        kind, length = self._plain(kind, path)
        if isinstance(value, np.ndarray):
            # Its room; the array itself is copied afterwards, as a whole.
            self._format.append(f"{value.nbytes}x")
            self._arrays.append((source, place))
            return value.dtype, value.shape
        if dataclasses.is_dataclass(value):
            return (self._struct(value, source, f"{path}.", place),)
        if isinstance(value, list | tuple):
            return self._many(value, kind, source, path, place)
        if kind is bytes:
            if not length:
                raise TypeError(f"field {path!r}: how many bytes? Write Annotated[bytes, 16]")
            self._format.append(f"{length}s")
            self._numbers.append(source)
            return (f"S{length}",)
        self._numbers.append(source)
        return (self._number(kind, path, ""),)

    def _many(self, value: Any, kind: Any, source: str, path: str, place: tuple[str | int, ...]) -> tuple[Any, ...]:
        if not value:
            raise TypeError(f"field {path!r} is empty: its length is that of the object that the channel is made with")
        if dataclasses.is_dataclass(value[0]):
            structs = [self._struct(e, f"{source}[{i}]", f"{path}.", (*place, i)) for i, e in enumerate(value)]
            if any(of != structs[0] for of in structs):
                raise TypeError(f"field {path!r}: its elements differ in type or length")
            return structs[0], (len(value),)
        element, _ = self._plain((*get_args(kind), type(value[0]))[0], path)
        self._numbers.append(f"*{source}")
        return self._number(element, path, str(len(value))), (len(value),)

    def _plain(self, kind: Any, path: str) -> tuple[Any, int]:
        """An annotation without its metadata; and the length in it."""
        length = 0
        if get_origin(kind) is Annotated:
            kind, *said = get_args(kind)
            length = next((word for word in said if isinstance(word, int)), 0)
            self.units.update((path, word) for word in said if isinstance(word, str))
        return kind, length

    def _number(self, kind: Any, path: str, count: str) -> str:
        """A number's dtype; notes how `count` of it are packed."""
        code = NUMBERS.get(kind)
        if code is None and isinstance(kind, type) and issubclass(kind, IntEnum):
            self.constants[path] = kind
            code = "i4"
        if code is None and isinstance(kind, type) and issubclass(kind, np.generic):
            code = np.dtype(kind).str[1:]
        if code is None or code.replace("?", "b1") not in FORMATS:
            raise TypeError(
                f"field {path!r}: {kind} is none of bool, int, float, a numpy number, an IntEnum, bytes, a dataclass, an array, or a list of these"
            )
        self._format.append(count + FORMATS[code.replace("?", "b1")])
        return code


def _tuple(expressions: list[str]) -> str:
    return f"lambda o: ({''.join(f'{expression}, ' for expression in expressions)})"


def _within(row: npt.NDArray[Any], place: tuple[str | int, ...]) -> npt.NDArray[Any]:
    """The view of an array in the row."""
    view: Any = row
    for step in place:
        view = view[step]
    return np.asarray(view)
