"""What the nodes have in common: options as parameters, and a process with one node and one thread."""

import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.action import ActionServer
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from ...threads import call_thread
from ..options import Options

JOIN_S = 25.0
"""So long for the others to come up."""


class NotThere(Exception):
    """Another node is not there; the text says which."""


def options_of(node: Node) -> Options:
    """Each as a parameter of the node; without it as in its environment or by default."""
    default = Options.of_environment()
    given = {name: node.declare_parameter(name, value).value for name, value in default.parameters().items()}
    return default.with_parameters(given)


def serve(node: Node, action: Any, name: str) -> ActionServer:
    """An action whose goals the node's own handlers take. A goal ends by `execute` with a callback that says how."""
    return ActionServer(
        node,
        action,
        name,
        execute_callback=lambda _: action.Result(),
        goal_callback=node.on_goal,
        handle_accepted_callback=node.on_accepted,
        cancel_callback=node.on_cancel,
    )


def until(condition: Callable[[], Any], step: Callable[[float], Any], stop: threading.Event, what: str) -> None:
    """Waits for others. Raises NotThere."""
    deadline_s = time.monotonic() + JOIN_S
    while not condition():
        if stop.is_set():
            raise NotThere("interrupted")
        if time.monotonic() > deadline_s:
            raise NotThere(f"{what} after {JOIN_S:g} s")
        step(0.05)


def stopping() -> threading.Event:
    """Set by SIGINT and SIGTERM. ROS 2's own handlers would end the context under a node that says goodbye."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def main(name: str, make: Callable[[], Node], arguments: list[str]) -> int:
    """A process of one node under a single-threaded executor. It says `ready` once the node is. Exit code 2 when others were not there."""
    stop = stopping()
    call_thread(name)
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    executor = SingleThreadedExecutor()
    node = None
    try:
        node = make()
        executor.add_node(node)
        node.join(executor.spin_once, stop)
        print("ready", flush=True)
        while not stop.is_set():
            executor.spin_once(timeout_sec=0.1)
    except NotThere as missing:
        if not stop.is_set():
            print(f"reach: {missing}", file=sys.stderr)
            return 2
    except ExternalShutdownException:
        pass
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0
