"""libreach_controller.so (reach_controller/) for Python. Calls give the interpreter's lock back while they wait."""

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import numpy as np
from reach_msgs.msg import Execution

from ..options import Options
from ..robot import Arm, Slips
from ..trajectory import Trajectory

MODEL = Path(__file__).parents[1] / "panda.xml"
NEWS_MS = 100


class ControllerError(Exception):
    """It does not start; the text says why."""


class _Execution(Structure):
    """execution_t of controller.h, in its order; named as in reach_msgs/Execution."""

    _fields_ = [
        *((name, c_int64) for name in ("first_command_ns", "last_command_ns")),
        *((f"lateness_{which}_ns", c_int64) for which in ("p50", "p99", "max")),
        *((f"step_{which}_ns", c_int64) for which in ("p50", "p99")),
        ("slipped_ns", c_int64),
        *((name, c_uint32) for name in ("cycles", "missed", "late")),
        *((name, c_double) for name in ("simulated_s", "wall_s", "tracking_rms_rad", "tracking_max_rad")),
    ]


class News(Structure):
    """What there is to say of the trajectory that was started last."""

    _fields_ = [("elapsed_s", c_double), ("error_rad", c_double), ("_reason", c_char_p), ("_execution", _Execution)]

    @property
    def reason(self) -> str:
        """Empty: it is at its goal."""
        return (self._reason or b"").decode()

    @property
    def execution(self) -> Execution:
        return Execution(**{name: getattr(self._execution, name) for name, *_ in _Execution._fields_})


class _Slips(Structure):
    """slips_t."""

    _fields_ = [(name, c_uint64) for name in ("count", "total_ns", "max_ns")]


class Controller:
    """Raises ControllerError. The arm is the caller's."""

    NONE, PROGRESS, ENDED = range(3)

    def __init__(self, options: Options, arm: Arm) -> None:
        try:
            self.library = ctypes.CDLL("libreach_controller.so")
        except OSError as missing:
            raise ControllerError(f"{missing}; run `make ros2`") from missing
        self.library.reach_open.restype = c_void_p
        self.library.reach_news.argtypes = [c_void_p, c_int, POINTER(News)]
        self.library.reach_follow.argtypes = [c_void_p, c_size_t, POINTER(c_double)]
        self.library.reach_slips.restype = _Slips
        for name in ("reach_reset", "reach_cancel", "reach_slips", "reach_close"):
            getattr(self.library, name).argtypes = [c_void_p]
        why = ctypes.create_string_buffer(1000)
        self.handle = self.library.reach_open(
            str(MODEL).encode(),
            c_int(arm.link.fileno()),
            c_int(arm.page),
            c_int64(int(options.stall_limit * 1e9)),
            c_int(options.priority == "fifo"),
            c_int(options.reliability == "reliable"),
            c_size_t(10 if options.depth is None else options.depth),
            why,
            c_size_t(len(why)),
        )
        if not self.handle:
            raise ControllerError(why.value.decode())

    def reset(self) -> bool:
        return bool(self.library.reach_reset(self.handle) == 0)

    def follow(self, trajectory: Trajectory) -> bool:
        points = np.column_stack([trajectory.times_s, trajectory.positions, trajectory.speeds])
        points = np.ascontiguousarray(points, dtype=np.float64)
        pointer = points.ctypes.data_as(POINTER(c_double))
        return bool(self.library.reach_follow(self.handle, len(points), pointer) == 0)

    def cancel(self) -> None:
        self.library.reach_cancel(self.handle)

    def news(self) -> tuple[int, News]:
        """Waits for up to 100 ms."""
        news = News()
        return self.library.reach_news(self.handle, NEWS_MS, byref(news)), news

    def slips(self) -> Slips:
        slips = self.library.reach_slips(self.handle)
        return Slips(slips.count, slips.total_ns, slips.max_ns)

    def close(self) -> None:
        self.library.reach_close(self.handle)
        self.handle = None
