"""Python's batches: one line "MODE COUNT" in, one line of ns out. Argument: a file for the log lines.

The loop around each call is part of the figure; the mode `loop` says what it costs."""

import gc
import json
import logging
import sys
import time
from time import perf_counter

import structlog
import taut

log_path = sys.argv[1]


class JsonLines(logging.Formatter):
    """One JSON object a line, as applications commonly configure `logging`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"time": record.created, "level": record.levelname, "event": record.getMessage()}
        return json.dumps(line | {"message_id": record.message_id})


def json_logger() -> logging.Logger:
    handler = logging.FileHandler(log_path + ".logging", mode="w")
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("robot")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    return logger


def json_structlog() -> structlog.typing.FilteringBoundLogger:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(open(log_path + ".structlog", "w")),  # noqa: SIM115 (open to the end)
        cache_logger_on_first_use=True,
    )
    return structlog.get_logger()


def run_loop(count: int) -> None:
    for _ in range(count):
        pass


def run_perf_counter(count: int) -> None:
    for _ in range(count):
        perf_counter()


def run_builtin(count: int) -> None:
    for _ in range(count):
        gc.isenabled()


def run_stamp(count: int) -> None:
    for message_id in range(count):
        taut.stamp("control.received", message_id)


def run_append(count: int) -> None:
    stamps = []
    for _ in range(count):
        stamps.append(("control.received", perf_counter()))


def run_logging(count: int) -> None:
    for message_id in range(count):
        logger.info("control.received", extra={"message_id": message_id})


def run_structlog(count: int) -> None:
    for message_id in range(count):
        structured.info("control.received", message_id=message_id)


logger = json_logger()
structured = json_structlog()
MODES = {
    "loop": run_loop,
    "perf_counter": run_perf_counter,
    "builtin": run_builtin,
    "stamp": run_stamp,
    "append": run_append,
    "logging": run_logging,
    "structlog": run_structlog,
}
for line in sys.stdin:
    mode, count = line.split()
    begin_ns = time.thread_time_ns()
    MODES[mode](int(count))
    print(f"{(time.thread_time_ns() - begin_ns) / int(count):.4f}", flush=True)
