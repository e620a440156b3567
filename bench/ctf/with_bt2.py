"""Reads a trace as tracetools_analysis and CARET do: an event after the other out of babeltrace2's Python bindings, each a
dict, and then data frames of pandas, one for each kind of event, and the durations of callbacks. Prints how many events.

They go on from there to chains; that is not done here, and costs them more.
"""

import sys
from collections import defaultdict

import bt2
import pandas as pd


def main() -> None:
    by_name = defaultdict(list)
    count = 0
    for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
        if type(message) is not bt2._EventMessageConst:
            continue
        event = message.event
        row = {"_timestamp": message.default_clock_snapshot.ns_from_origin}
        for fields in (event.common_context_field, event.payload_field):
            for name, value in fields.items():
                row[name] = int(value) if isinstance(value, bt2._IntegerFieldConst) else str(value)
        by_name[event.name].append(row)
        count += 1
    frames = {name: pd.DataFrame.from_dict(rows) for name, rows in by_name.items()}
    starts, ends = frames["ros2:callback_start"], frames["ros2:callback_end"]
    both = pd.merge_asof(
        ends.sort_values("_timestamp"),
        starts.assign(start=starts["_timestamp"]).sort_values("_timestamp"),
        on="_timestamp",
        by=["vpid", "vtid", "callback"],
    )
    durations = both["_timestamp"] - both["start"]
    print(count, f"median callback {durations.median() / 1e6:.3f} ms", file=sys.stderr)
    print(count)


if __name__ == "__main__":
    main()
