"""A node that joins two topics by a filter, and logs which messages each set has: `python filters.py TRUTH`.

Of the second topic each message comes two ticks after that of the first one which belongs to it.
"""

import json
import os
import pathlib
import signal
import sys

import message_filters
import rclpy
from std_msgs.msg import String

COUNT, LATE = 50, 2
truth = {
    name: []
    for name in ("published", "received", "served", "answered", "timers", "executed", "feedback", "results", "guarded")
}
# Whatever becomes of the process that started this one.
signal.alarm(600)
# It ends at once, and would leave its shared memory behind.
os.environ["FASTDDS_BUILTIN_TRANSPORTS"] = "UDPv4"
rclpy.init()
node = rclpy.create_node("fusion")
left, right = (node.create_publisher(String, topic, 10) for topic in ("left", "right"))
filters = [message_filters.Subscriber(node, String, topic) for topic in ("left", "right")]
sets = []
message_filters.Synchronizer(filters).registerCallback(lambda one, _: sets.append(int(one.data)))
ticks = iter(range(COUNT + LATE))


def on_timer():
    number = next(ticks, None)
    if number is None:
        timer.cancel()
    else:
        if number < COUNT:
            left.publish(String(data=str(number)))
        if number >= LATE:
            right.publish(String(data=str(number - LATE)))


def are_matched():
    subscriptions = [one.sub for one in filters]
    return all(one.get_subscription_count() for one in (left, right)) and all(
        one.get_publisher_count() for one in subscriptions
    )


while not are_matched():
    rclpy.spin_once(node, timeout_sec=0.01)
timer = node.create_timer(0.01, on_timer)
for _ in range(1000):
    rclpy.spin_once(node, timeout_sec=0.1)
    if len(sets) == COUNT:
        break
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True)
file = folder / f"{os.getpid()}.json"
file.with_suffix(".part").write_text(json.dumps({"pid": os.getpid(), "sets": sets, **truth}))
file.with_suffix(".part").rename(file)
sys.stdout.flush()
sys.stderr.flush()
# See nodes.py.
os._exit(0)
