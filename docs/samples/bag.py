"""Writes the bag that the page about imports reads: python bag.py FOLDER."""

import sys
from pathlib import Path

from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

PERIOD_NS, DELAY_NS = 10_000_000, 300_000

store = get_typestore(Stores.ROS2_JAZZY)
Temperature, Header, Time = (
    store.types[name] for name in ("sensor_msgs/msg/Temperature", "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
)
with Writer(Path(sys.argv[1]), version=9, storage_plugin=StoragePlugin.MCAP) as writer:
    connection = writer.add_connection("/temperature", Temperature.__msgtype__, typestore=store)
    for number in range(1000):
        read_ns = 1_700_000_000_000_000_000 + number * PERIOD_NS
        header = Header(stamp=Time(sec=read_ns // 10**9, nanosec=read_ns % 10**9), frame_id="base")
        message = store.serialize_cdr(
            Temperature(header=header, temperature=20.0, variance=0.0), Temperature.__msgtype__
        )
        writer.write(connection, read_ns + DELAY_NS, message)
