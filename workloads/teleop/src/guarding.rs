//! The guard's process: it receives the follower arm's state stream and answers the heartbeat. If it hangs or is
//! killed, there is no answer, and the follower stops.

use anyhow::Result;
use serde_json::json;

use crate::{
    Part,
    guards::Guard,
    links::{Control, Link},
    realtime,
    stream::StateStream,
};

const TICK_NS: u64 = 4_000_000;

pub fn run(control: &Control, part: &Part, mut heartbeat: Link) -> Result<()> {
    let clock = part.clock()?;
    let mut stream = StateStream::start(&part.host, part.states, part.receiver)?;
    let mut guard = Guard::new(part.guard, part.wire, part.operator)?;
    let priority = realtime::ask(realtime::GUARD);
    control.say("ready", &json!({}));
    let (mut states, mut challenges) = (Vec::new(), Vec::new());
    loop {
        // At the stream's end silence is what the guard finds.
        let sources = [control.source(), stream.source(), heartbeat.source()];
        let [is_called, has_states, _] = clock.wait(clock.now_ns() + TICK_NS, sources);
        if is_called {
            break;
        }
        // All that waits, before it is judged how old the newest is.
        let mut before = usize::MAX;
        while has_states && states.len() != before {
            before = states.len();
            stream.read(&clock, &mut states);
        }
        guard.turn(&states, clock.now_ns());
        states.clear();
        heartbeat.numbers(&mut challenges);
        for challenge in challenges.drain(..) {
            if let Some(answer) = guard.answer(challenge, clock.now_ns()) {
                heartbeat.send(&answer.to_le_bytes());
            }
        }
        if !heartbeat.is_open {
            break;
        }
    }
    control.say("result", &json!({ "guard": guard.summary(), "priority": priority, "stream": stream.counts().json() }));
    control.hear();
    Ok(())
}
