# Prints the stamps of a recording with stock packages; docs/reference/recording.md shows this file.
import sys

import numpy as np
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

names, pairs, stamps = {}, [], []
with open(sys.argv[1], "rb") as file:
    reader = make_reader(file, decoder_factories=[DecoderFactory()])
    for _, channel, _, m in reader.iter_decoded_messages():
        if channel.topic == "/taut/raw/names":
            names[m.id] = m.name
        elif channel.topic == "/taut/raw/clock":
            pairs.append((m.ticks, m.monotonic_ns))
        elif channel.topic == "/taut/raw/stamps":
            ticks = m.first_ticks + np.cumsum(m.delta_ticks, dtype=np.uint64)
            deltas = m.delta_message_id or m.wide_delta_message_id
            ids = np.uint64(m.first_message_id) + np.cumsum(deltas, dtype=np.int64).astype(np.uint64)
            stamps += zip(ticks, ids, m.point, m.kind, strict=True)

t0, n0 = pairs[0]
ns_per_tick = (pairs[-1][1] - n0) / (pairs[-1][0] - t0)
for ticks, message_id, point, kind in sorted(stamps):
    print(n0 + round((int(ticks) - t0) * ns_per_tick), message_id, names.get(point, ""), kind)
