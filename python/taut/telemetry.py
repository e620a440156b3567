"""Telemetry: hundreds to thousands of values at once, from the control loop into the recording.

>>> import numpy as np
>>> from taut.telemetry import Channel
>>> joint = [("position", "f8"), ("torque", "f4"), ("mode", "u1")]
>>> log = Channel(
...     "leg",
...     [("time", "f8"), ("joint", joint, (3,))],
...     rate_hz=400,
...     units={"time": "s", "joint.position": "rad", "joint.torque": "N·m"},
...     constants={"joint.mode": {"STOPPED": 0, "POSITION": 10}},
... )
>>> log.row["joint"]["position"][2] = 0.5    # the row is a numpy array: fill it in place
>>> log.write()                              # one copy of it into the ring

Or with an object of a dataclass, whose fields are then copied one by one (docs/reference/telemetry.md):

>>> from dataclasses import dataclass
>>> from typing import Annotated
>>> @dataclass
... class Leg:
...     time: Annotated[float, "s"] = 0.0
...     torque: Annotated[np.float32, "N·m"] = np.float32(0)
>>> leg = Leg()
>>> log = Channel("leg", leg, rate_hz=400)
>>> leg.time = 0.5
>>> log.write()

The recorder writes a channel `/telemetry/leg` that Foxglove, PlotJuggler and the `mcap` packages open as it
is. Without a session a write returns at once; with one it makes no system call and waits for nothing; what
does not fit is counted (`lost()`, and in every report). Each thread has channels of its own.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from taut._taut import TelemetryRing
from taut.structs import Layout

# Names of a field's values: {"STOPPED": 0} or an IntEnum.
Constants = Mapping[str, int] | type

# Writes that are oftener than one a microsecond are no control loop's; the rate sizes the ring.
RATE_MAX_HZ = 1e6
KINDS = {"i": "int", "u": "uint", "f": "float"}


class Channel:
    """A row of values, and where copies of it go. `rate_hz`, about how often will be written, sizes the ring.

    `of` is a numpy structured dtype, and the row is then a numpy array; or an object of a dataclass, and the row is that
    object. `units` are shown beside the fields, `constants` name a field's values; both go by path: "joint.position".
    """

    __slots__ = ("_fill", "_ring", "lost", "row", "write")

    row: Any
    write: Callable[[], None]

    def __init__(
        self,
        name: str,
        of: Any,
        *,
        rate_hz: float = 1000.0,
        units: Mapping[str, str] | None = None,
        constants: Mapping[str, Constants] | None = None,
    ) -> None:
        if not name.strip():
            raise ValueError("a telemetry channel needs a name: the recorder writes it as /telemetry/NAME")
        if not 0 < rate_hz <= RATE_MAX_HZ:
            raise ValueError(
                f"telemetry {name!r}: rate_hz is {rate_hz}; give how often a second it is written, up to {RATE_MAX_HZ:g}"
            )
        is_object = dataclasses.is_dataclass(of)
        if isinstance(of, type) and is_object:
            raise TypeError(f"telemetry {name!r}: give an object, {of.__name__}(…): its lists and arrays have lengths")
        layout = Layout(of) if is_object else None
        kind = layout.dtype if layout else np.dtype(of)
        units = {**(layout.units if layout else {}), **(units or {})}
        constants = {**(layout.constants if layout else {}), **(constants or {})}
        row: npt.NDArray[Any] = np.zeros((), kind)
        text = describe(name, kind, units, constants)
        self._ring = TelemetryRing(name, text, row.reshape(1).view(np.uint8).data, rate_hz)
        self.lost = self._ring.lost
        if layout:
            self.row = of
            self._fill = layout.filler(of, row)
            self.write = self._write_object
        else:
            self.row = row
            # The ring's own function: one call less on the loop.
            self.write = self._ring.write

    def _write_object(self) -> None:
        self._fill()
        self._ring.write()


def describe(name: str, dtype: np.dtype[Any], units: Mapping[str, str], constants: Mapping[str, Constants]) -> str:
    """The dtype as the protocol's text (docs/reference/protocol.md, "Telemetry")."""
    if dtype.names is None:
        raise TypeError(f"telemetry {name!r}: the dtype needs named fields, as in [('position', 'f8')]; got {dtype}")
    types: list[str] = []
    paths: set[str] = set()
    _type(name, "", dtype, units, constants, types, paths)
    for what, given in (("units", units), ("constants", constants)):
        for path in given:
            if path not in paths:
                raise ValueError(f"telemetry {name!r}: {what} names {path!r}, which is no field of the dtype")
    return "".join(types)


def _type(
    name: str,
    path: str,
    dtype: np.dtype[Any],
    units: Mapping[str, str],
    constants: Mapping[str, Constants],
    types: list[str],
    paths: set[str],
) -> None:
    """Adds the type's text behind those of the types that it holds."""
    lines = [f"type\t{name}\t{dtype.itemsize}\n"]
    for field, (of, offset, *_) in (dtype.fields or {}).items():
        at = f"{path}{field}"
        paths.add(at)
        element, shape = of.subdtype or (of, ())
        if element.names is not None:
            kind = f"{name}_{field}"
            _type(kind, f"{at}.", element, units, constants, types, paths)
            kind = f"struct {kind}"
        else:
            kind = _kind(at, element)
        for constant, value in _constants(constants.get(at, {})):
            lines.append(f"constant\t{field}\t{constant}\t{value}\n")
        count = int(np.prod(shape)) if shape else 0
        comment = " ".join(units.get(at, "").split())
        lines.append(f"field\t{field}\t{kind}\t{count}\t{offset}\t{comment}\n")
    types.append("".join(lines))


def _kind(path: str, dtype: np.dtype[Any]) -> str:
    if not dtype.isnative:
        raise TypeError(f"field {path!r}: {dtype} is not in this machine's byte order")
    if dtype.kind == "b":
        return "bool"
    if dtype.kind == "S":
        return f"text{dtype.itemsize}"
    if dtype.kind in KINDS and dtype.itemsize in (1, 2, 4, 8) and dtype != np.float16:
        return f"{KINDS[dtype.kind]}{dtype.itemsize * 8}"
    raise TypeError(f"field {path!r}: {dtype} is none of bool, int, uint, float32, float64, bytes ('S16') or a struct")


def _constants(given: Constants) -> list[tuple[str, int]]:
    if isinstance(given, Mapping):
        return [(name, int(value)) for name, value in given.items()]
    return [(f"{given.__name__}_{member.name}", int(member.value)) for member in given]  # type: ignore[attr-defined]
