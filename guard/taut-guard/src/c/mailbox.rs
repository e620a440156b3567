//! The mailbox for C, of 10 words: one thread puts, another takes.

use core::sync::atomic::{AtomicU8, Ordering};

use super::{Handle, MAGIC, NO_HANDLE, place};
use crate::setpoint::{Mailbox, Put};

/// An id, a count and 8 numbers.
const WORDS: usize = 10;

pub type MailboxHandle = Handle<39>;

/// The mailbox and which place each end owns. Only that end's thread touches its number.
struct Post {
    mailbox: Mailbox<WORDS>,
    senders: AtomicU8,
    receivers: AtomicU8,
}

/// Two threads use the handle at once: shared, never exclusive.
unsafe fn shared<'a>(handle: *const MailboxHandle) -> Option<&'a Post> {
    // SAFETY: the handle is null or valid; with the magic in place, `place` put a `Post` there.
    unsafe {
        if handle.is_null() || (*handle).magic != MAGIC {
            return None;
        }
        Some(&*(&raw const (*handle).body).cast::<Post>())
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_mailbox_init(handle: *mut MailboxHandle) -> i32 {
    if handle.is_null() {
        return NO_HANDLE;
    }
    let mut mailbox = Mailbox::new();
    let (sender, receiver) = mailbox.split();
    let (senders, receivers) = (AtomicU8::new(sender.place()), AtomicU8::new(receiver.place()));
    // SAFETY: valid, as the header asks.
    unsafe { place(handle, Post { mailbox, senders, receivers }) };
    0
}

/// 0, or 1 and the item that was overwritten unread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_mailbox_put(
    handle: *mut MailboxHandle,
    item: *const [u64; WORDS],
    overwritten: *mut [u64; WORDS],
) -> i32 {
    // SAFETY: null or valid.
    let (Some(post), Some(item)) = (unsafe { (shared(handle), item.as_ref()) }) else { return NO_HANDLE };
    let mut sender = post.mailbox.sender_at(post.senders.load(Ordering::Relaxed));
    let put = sender.put(item);
    post.senders.store(sender.place(), Ordering::Relaxed);
    let Put::Superseded(before) = put else { return 0 };
    if !overwritten.is_null() {
        // SAFETY: valid, as the header asks.
        unsafe { overwritten.write(before) };
    }
    1
}

/// 1 and the latest item, or 0 if there is none that was not taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taut_mailbox_take(handle: *mut MailboxHandle, item: *mut [u64; WORDS]) -> i32 {
    // SAFETY: null or valid.
    let (Some(post), false) = (unsafe { shared(handle) }, item.is_null()) else { return NO_HANDLE };
    let mut receiver = post.mailbox.receiver_at(post.receivers.load(Ordering::Relaxed));
    let taken = receiver.take();
    post.receivers.store(receiver.place(), Ordering::Relaxed);
    let Some(taken) = taken else { return 0 };
    // SAFETY: valid, checked above.
    unsafe { item.write(taken) };
    1
}
