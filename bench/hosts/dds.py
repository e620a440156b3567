"""A pair of CycloneDDS programs without stamps: the desk writes setpoints, and the robot answers each with a state.

dds.py desk|robot COUNT; prints how many it received."""

import sys
import time
from dataclasses import dataclass

from cyclonedds.core import InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

END = -1


@dataclass
class Number(IdlStruct, typename="Number"):
    number: int


def main(host: str, count: int) -> None:
    participant = DomainParticipant(0)
    qos = Qos(Policy.Reliability.Reliable(duration(seconds=1)))
    setpoints, states = Topic(participant, "setpoint", Number), Topic(participant, "state", Number)
    out, back = (setpoints, states) if host == "desk" else (states, setpoints)
    writer, reader = DataWriter(participant, out, qos=qos), DataReader(participant, back, qos=qos)
    received = 0
    if host == "desk":
        # Discovery.
        time.sleep(2)
        for number in range(count):
            time.sleep(0.005)
            writer.write(Number(number))
            received += len(reader.take(count))
        time.sleep(0.5)
        received += len(reader.take(count))
        writer.write(Number(END))
        time.sleep(0.5)
    else:
        waiting = WaitSet(participant)
        waiting.attach(ReadCondition(reader, SampleState.Any | InstanceState.Alive | ViewState.Any))
        is_over = False
        while not is_over:
            waiting.wait(duration(seconds=60))
            for setpoint in reader.take(count):
                is_over = setpoint.number == END
                received += not is_over
                if not is_over:
                    writer.write(setpoint)
    print(received)


main(sys.argv[1], int(sys.argv[2]))
