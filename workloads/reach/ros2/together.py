"""All nodes in one process under a multi-threaded executor, and the trials of its client: `python -m workloads.reach --bus ros2 --together`.

Arguments and exit codes are those of client.py."""

import sys
import threading
import time

import rclpy
from rclpy.executors import MultiThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from ...threads import call_thread
from . import node
from .client import Client, arguments, run
from .planner import PlannerNode
from .simulator import Simulator
from .state_publisher import StatePublisher

THREADS = 4


def main() -> int:
    asked, stop = arguments(), node.stopping()
    call_thread("client")
    sys.setswitchinterval(0.0005)
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    executor = MultiThreadedExecutor(THREADS)
    nodes = []
    over = threading.Event()

    def spin() -> None:
        while not over.is_set():
            executor.spin_once(timeout_sec=0.1)

    spinning = threading.Thread(target=spin, name="executor")
    try:
        for make in (Simulator, StatePublisher, PlannerNode, lambda: Client(asked.cancel_after)):
            nodes.append(make())
            executor.add_node(nodes[-1])
        spinning.start()
        for each in nodes[:-1]:
            each.join(time.sleep, stop)
        return run(nodes[-1], asked, time.sleep, stop)
    except node.NotThere as missing:
        print(f"reach: {missing}", file=sys.stderr)
        return 2
    finally:
        over.set()
        if spinning.ident:
            spinning.join()
        executor.shutdown()
        for each in nodes:
            each.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    sys.exit(main())
