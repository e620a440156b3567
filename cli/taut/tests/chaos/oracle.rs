//! What must be true of a recording, whatever happened (docs/reference/recording.md, "What is acknowledged").

use crate::stage::Stage;

/// Numbers by thread, as found in the file.
type Numbers = Vec<Vec<u64>>;

/// What a round came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    pub stamped: u64,
    pub recorded: u64,
    pub lost: u64,
}

/// Of every file at any time: each stamp once, in its order, none that was not made; and what was seen before is there.
pub fn holds(stage: &Stage, numbers: &Numbers, seen: &Numbers) -> Account {
    let mut account = Account::default();
    for (thread, found) in numbers.iter().enumerate().take(stage.threads() as usize) {
        let stamped = stage.stamped(thread as u64);
        assert!(found.is_sorted_by(|a, b| a < b), "thread {thread}: twice, or not in its order");
        // A thread may be killed between its stamp and its own account of it.
        let last = found.last().copied().unwrap_or(0);
        assert!(last <= stamped + 1, "thread {thread}: number {last} of {stamped}");
        let is_kept = seen[thread].iter().all(|number| found.binary_search(number).is_ok());
        assert!(is_kept, "thread {thread}: what was in the file is no longer");
        account.stamped += stamped;
        account.recorded += found.len() as u64;
    }
    account
}

/// Of a recording that ended by itself: what is not in it was counted.
pub fn balances(stage: &Stage, seen: &Numbers) -> Account {
    let (contents, numbers) = stage.look();
    let mut account = holds(stage, &numbers, seen);
    assert_eq!(contents.damage.len(), 0, "{:?}", contents.damage);
    let ending = contents.ending.expect("an ending");
    assert_eq!(ending.stamps, account.recorded, "the count that was told is that of the file");
    let unannounced: u64 = stage.robots().iter().map(|robot| stage.unannounced(robot)).sum();
    // An uncounted loss is one of those that the robots count themselves.
    account.lost = ending.lost_stamps - stage.uncounted() + unannounced;
    let killed = stage.robots().iter().filter(|robot| Stage::was_killed(robot)).map(|robot| robot.threads);
    let (told, at_most) = (account.recorded + account.lost, account.stamped + killed.sum::<u64>());
    assert!(
        (account.stamped..=at_most).contains(&told),
        "{} recorded and {} lost of {} to {at_most} stamps",
        account.recorded,
        account.lost,
        account.stamped
    );
    account
}

/// Of a recording that did not end by itself: it is readable, and up to its last stamp of each thread nothing is missing,
/// since no ring was full.
pub fn is_cut_clean(stage: &Stage, seen: &Numbers) -> Account {
    let (contents, numbers) = stage.look();
    let account = holds(stage, &numbers, seen);
    assert!(contents.ending.is_none());
    for (thread, found) in numbers.iter().enumerate() {
        let last = found.last().copied().unwrap_or(0);
        assert_eq!(found.len() as u64, last, "thread {thread}: holes up to its last stamp in the file");
    }
    account
}
