//! What one trial differs in from the command as it is: settings that the program inherits, rules for its threads, and changes beyond it.

use std::fmt;

use serde::{Deserialize, Serialize};
use taut_lab::Cpus;

use crate::{Outside, Policy};

/// All changes of one trial; empty for the command as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// Set before the program starts; threads and child processes inherit them.
    pub settings: Vec<Setting>,
    /// Applied to threads once they exist.
    pub threads: Vec<ThreadRule>,
    /// Changes beyond the program, undone after each trial.
    pub outside: Vec<Outside>,
}

/// A setting that a program inherits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// SCHED_FIFO with this priority.
    Fifo(u8),
    /// Nice value.
    Nice(i32),
    /// Timer slack in ns.
    TimerSlack(u64),
    /// No transparent huge pages.
    NoHugePages,
    /// A variable of the environment.
    Variable(String, String),
    /// Python: seconds after which a thread asks for the interpreter lock.
    SwitchInterval(f64),
    /// Python: allocations until the youngest generation is collected.
    CollectAfter(u32),
    /// Python: what survives the first full collection is never looked at again.
    FreezeCollected,
    /// Python: all memory is locked.
    LockMemory,
    /// rclpy: its executor of events where the program has the one of a single thread.
    EventsExecutor,
    /// The same, with its executor of several threads.
    ThreadedExecutor,
    /// Python: this interpreter instead of the command's.
    Interpreter(String),
}

impl Setting {
    /// Whether a module that the interpreter loads makes it.
    pub fn is_of_module(&self) -> bool {
        matches!(
            self,
            Setting::SwitchInterval(_)
                | Setting::CollectAfter(_)
                | Setting::FreezeCollected
                | Setting::LockMemory
                | Setting::EventsExecutor
                | Setting::ThreadedExecutor
        )
    }
}

/// Which threads of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threads {
    /// Every one.
    All,
    /// Those with one of these names (`comm`, 15 bytes).
    Named(Vec<String>),
}

/// What some threads get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadRule {
    /// Which.
    pub threads: Threads,
    /// The CPUs that they may run on.
    pub cpus: Option<Cpus>,
    /// How they are scheduled.
    pub policy: Option<Policy>,
}

impl Plan {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self == &Plan::default()
    }

    /// Both together; `None` where they set the same thing.
    pub fn and(&self, other: &Plan) -> Option<Plan> {
        let same_setting = |one: &Setting| {
            other.settings.iter().any(|two| match (one, two) {
                (Setting::Variable(one, _), Setting::Variable(two, _)) => one == two,
                (Setting::Fifo(_) | Setting::Nice(_), Setting::Fifo(_) | Setting::Nice(_))
                | (Setting::EventsExecutor, Setting::ThreadedExecutor)
                | (Setting::ThreadedExecutor, Setting::EventsExecutor) => true,
                _ => std::mem::discriminant(one) == std::mem::discriminant(two),
            })
        };
        let schedules = |plan: &Plan| {
            plan.settings.iter().any(|setting| matches!(setting, Setting::Fifo(_) | Setting::Nice(_)))
                || plan.threads.iter().any(|rule| rule.policy.is_some())
        };
        let places = |plan: &Plan| plan.threads.iter().any(|rule| rule.cpus.is_some());
        // The kernel admits SCHED_DEADLINE only for threads that may run anywhere.
        let is_deadline =
            |plan: &Plan| plan.threads.iter().any(|rule| matches!(rule.policy, Some(Policy::Deadline { .. })));
        let clash = self.settings.iter().any(same_setting)
            || schedules(self) && schedules(other)
            || places(self) && places(other)
            || is_deadline(self) && places(other)
            || is_deadline(other) && places(self)
            || self.outside.iter().any(|one| other.outside.iter().any(|two| one.is_of(two)));
        (!clash).then(|| Plan {
            settings: [&self.settings[..], &other.settings].concat(),
            threads: [&self.threads[..], &other.threads].concat(),
            outside: [&self.outside[..], &other.outside].concat(),
        })
    }
}

impl ThreadRule {
    /// Whether it is for a thread of this name.
    pub fn is_for(&self, name: &str) -> bool {
        match &self.threads {
            Threads::All => true,
            Threads::Named(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Setting::Nice(nice) => write!(f, "nice {nice}"),
            Setting::TimerSlack(ns) => write!(f, "timer slack {ns} ns"),
            Setting::NoHugePages => f.write_str("no transparent huge pages"),
            Setting::Variable(name, value) => write!(f, "{name}={value}"),
            Setting::SwitchInterval(s) => write!(f, "Python switch interval {} ms", s * 1e3),
            Setting::CollectAfter(n) => write!(f, "Python collects garbage after {n} allocations"),
            Setting::FreezeCollected => f.write_str("Python freezes what survives its first full collection"),
            Setting::LockMemory => f.write_str("all memory locked"),
            Setting::EventsExecutor => f.write_str("rclpy's EventsExecutor for its SingleThreadedExecutor"),
            Setting::ThreadedExecutor => f.write_str("rclpy's MultiThreadedExecutor for its SingleThreadedExecutor"),
            Setting::Interpreter(path) => write!(f, "interpreter {path}"),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threads::All => f.write_str("all threads"),
            Threads::Named(names) if names.len() == 1 => write!(f, "thread {}", names[0]),
            Threads::Named(names) => write!(f, "threads {}", names.join(", ")),
        }
    }
}

impl fmt::Display for ThreadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = self.cpus.as_ref().map(|cpus| format!("CPU {cpus}"));
        let what = [self.policy.map(|policy| policy.to_string()), cpus].into_iter().flatten().collect::<Vec<_>>();
        write!(f, "{} for {}", what.join(", "), self.threads)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.settings.iter().map(ToString::to_string);
        let threads = self.threads.iter().map(ToString::to_string);
        let outside = self.outside.iter().map(ToString::to_string);
        f.write_str(&settings.chain(threads).chain(outside).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(setting: Setting) -> Plan {
        Plan { settings: vec![setting], ..Plan::default() }
    }

    #[test]
    fn two_remedies_that_set_the_same_thing_are_no_pair() {
        let variable = |name: &str| of(Setting::Variable(name.into(), "1".into()));
        assert!(of(Setting::Fifo(50)).and(&of(Setting::Nice(-20))).is_none());
        assert!(variable("A").and(&variable("A")).is_none());
        let both = variable("A").and(&variable("B")).unwrap();
        assert_eq!(both.to_string(), "A=1; B=1");
        let rule = |cpus, policy| Plan {
            threads: vec![ThreadRule { threads: Threads::All, cpus, policy }],
            ..Plan::default()
        };
        let placed = rule(Some(Cpus::from(vec![0])), None);
        assert!(placed.and(&rule(None, Some(Policy::Fifo(50)))).is_some());
        assert!(placed.and(&rule(None, Some(Policy::Deadline { runtime_ns: 1, period_ns: 2 }))).is_none());
    }
}
