"""A copy of a recording without what the program says of itself: its stamps and ROS 2 events."""

import sys
from pathlib import Path

from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer

SAID = ("/taut/raw/stamps", "/taut/raw/ros", "/taut/raw/ros_objects", "/taut/raw/names")


def copy(recording: Path, target: Path) -> None:
    """Everything else is kept as it is."""
    with recording.open("rb") as source, target.open("wb") as out:
        reader = make_reader(source)
        writer = Writer(out, compression=CompressionType.ZSTD)
        writer.start(profile=reader.get_header().profile, library=reader.get_header().library)
        summary = reader.get_summary()
        assert summary is not None
        # A recording's raw channels have their numbers by the format.
        for channel in sorted(summary.channels.values(), key=lambda channel: channel.id):
            if channel.topic.startswith("/taut/raw"):
                schema = summary.schemas[channel.schema_id]
                number = writer.register_schema(schema.name, schema.encoding, schema.data)
                writer.register_channel(channel.topic, channel.message_encoding, number, channel.metadata)
        for _, channel, message in reader.iter_messages(log_time_order=False):
            if channel.topic.startswith("/taut/raw") and channel.topic not in SAID:
                writer.add_message(channel.id, message.log_time, message.data, message.publish_time, message.sequence)
        for metadata in reader.iter_metadata():
            writer.add_metadata(metadata.name, metadata.metadata)
        writer.finish()


if __name__ == "__main__":
    copy(Path(sys.argv[1]), Path(sys.argv[2]))
