//! Tunings to show: made by the search itself, on drawn figures of a fixed seed.

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use taut_tune::{
    Guard, Left, Measured, Plan, Problem, Remedy, Setting, Settings, TABLE, TailCause, ThreadRule, Threads, Tuned,
    Within, search,
};

fn remedy(id: &str, plan: Plan, gain: f64) -> Remedy {
    let row = TABLE.iter().find(|row| row.id == id).unwrap();
    Remedy { row, id: id.into(), plan, against: vec!["preempted".into()], gain }
}

fn tuned() -> Tuned {
    let place = ThreadRule { threads: Threads::Named(vec!["loop".into()]), cpus: Some(vec![0].into()), policy: None };
    let place = Plan { threads: vec![place], ..Plan::default() };
    let setting = |one| Plan { settings: vec![one], ..Plan::default() };
    let cause =
        |cause: &str, detail: &str, tail_share| TailCause { cause: cause.into(), detail: detail.into(), tail_share };
    Tuned {
        command: vec!["./robot".into(), "--rate".into(), "1000".into()],
        chain: "loop.due → loop.done".into(),
        points: vec!["loop.due".into(), "loop.done".into()],
        messages: 2011,
        figure: "p99".into(),
        causes: vec![cause("preempted", "by hog/4711", 0.93), cause("timer_slack", "", 0.05)],
        remedies: vec![
            remedy("place", place, 0.8),
            remedy("fifo", setting(Setting::Fifo(71)), 0.8),
            remedy("timer-slack", setting(Setting::TimerSlack(1)), 0.02),
        ],
        left: vec![Left {
            id: "move-others".into(),
            title: "competing processes moved to other CPUs".into(),
            why: "changes beyond the program, put back after each trial".into(),
            grant: Some("add --allow-changes".into()),
            gain: 0.8,
        }],
        within: vec![Within {
            against: "lock:sdk".into(),
            hop: "loop.due → loop.done".into(),
            share: 0.06,
            evidence: "lock:sdk is 6 % of the excess".into(),
            advice: "hold the lock for a shorter time".into(),
            gain: 0.03,
        }],
        seed: 7,
        elapsed_s: 61.0,
        trial_s: Some(1.7),
        is_restored: true,
        ..Tuned::default()
    }
}

/// The search over drawn trials of a program whose tail is 1.2 ms times the factors.
fn searched(tuned: Tuned, factors: [f64; 3], fails: Option<usize>) -> Tuned {
    searched_within(usize::MAX, tuned, factors, fails)
}

/// The same with so many trials at most.
fn searched_within(most: usize, mut tuned: Tuned, factors: [f64; 3], fails: Option<usize>) -> Tuned {
    let mut left = most;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let guards = vec![Guard { name: "p50".into(), rule: Settings::default().tail }];
    let settings = Settings { seed: 7, guards, ..Settings::default() };
    let found = search::<std::convert::Infallible>(&settings, &[3, 6, 1], &|_, _| false, &mut |_, set| {
        let Some(after) = left.checked_sub(1) else { return Ok(None) };
        left = after;
        let noise: f64 = random.random_range(0.9..1.1);
        let factor: f64 = set.iter().map(|at| factors[*at]).product();
        let problem = fails.filter(|at| set.contains(at)).map(|_| Problem::Failed("exit code 3: no memory".into()));
        Ok(Some(Measured {
            tail_ns: Some(1.2e6 * factor * noise),
            p50_ns: Some(61e3 * noise),
            guards: vec![Some(61e3 * noise)],
            agreed: if set == [0] { 310 } else { 0 },
            problem,
            ..Measured::default()
        }))
    });
    tuned.take(&found.unwrap());
    tuned.make_files(&[super::tune_headline(&tuned), "Measured on robot, Linux 6.18: ./robot --rate 1000".into()]);
    tuned
}

/// By name: the first has a recommendation.
pub fn all() -> Vec<(&'static str, Tuned)> {
    let lock = Tuned {
        causes: vec![TailCause { cause: "lock".into(), detail: "sdk".into(), tail_share: 0.8 }],
        within: vec![Within { share: 0.8, gain: 0.7, ..tuned().within.remove(0) }],
        ..tuned()
    };
    let nothing = Tuned { remedies: Vec::new(), left: Vec::new(), figure: String::new(), ..tuned() };
    let denied = Tuned { remedies: Vec::new(), figure: String::new(), ..tuned() };
    let short = Tuned { needed_s: Some(290.0), ..tuned() };
    vec![
        ("recommended", searched(tuned(), [0.1, 0.1, 1.0], Some(1))),
        ("nothing_helps", searched(tuned(), [1.0, 1.0, 1.0], None)),
        ("time_in_the_program", searched(lock.clone(), [1.0, 1.0, 1.0], None)),
        ("some_of_it_outside", searched_within(22, Tuned { needed_s: Some(290.0), ..lock }, [0.5, 0.4, 1.0], None)),
        (
            "nothing_usable",
            searched(Tuned { folder: Some("out".into()), within: Vec::new(), ..tuned() }, [1.0, 1.0, 1.0], Some(0)),
        ),
        ("out_of_time", searched_within(22, short.clone(), [0.5, 0.4, 1.0], None)),
        ("no_time", searched_within(0, short, [0.5, 0.4, 1.0], None)),
        ("not_restored", searched_within(0, Tuned { is_restored: false, ..tuned() }, [0.5, 0.4, 1.0], None)),
        ("nothing_to_try", nothing),
        ("not_permitted", denied),
    ]
}
