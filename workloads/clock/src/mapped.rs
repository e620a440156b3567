//! Memory that processes share.

use std::{
    fs::File,
    io,
    ops::Deref,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
    ptr::NonNull,
    sync::Arc,
};

use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

use crate::Time;

/// What may lie in shared memory.
///
/// # Safety
/// It consists of atomic integers alone, so that any bytes are valid, all zeros is the new state, and threads and processes may
/// change it at the same time. Its alignment is a page's at most.
pub unsafe trait Plain {}

// SAFETY: atomic integers; zeros are a clock that has yet to begin.
unsafe impl<const SEATS: usize> Plain for Time<SEATS> {}

/// A mapping of it, shared by whoever in this process needs it.
pub struct Mapped<P: Plain> {
    page: NonNull<P>,
    file: OwnedFd,
}

// SAFETY: `Plain`, and the mapping lives as long as this value.
unsafe impl<P: Plain> Send for Mapped<P> {}
// SAFETY: as above.
unsafe impl<P: Plain> Sync for Mapped<P> {}

impl<P: Plain> Mapped<P> {
    /// A new page, all zeros, that processes started from now on can open by `path`.
    ///
    /// # Errors
    /// No memory.
    pub fn create() -> io::Result<Arc<Mapped<P>>> {
        let file = memfd_create(c"taut-robot", MemfdFlags::empty())?;
        ftruncate(&file, size_of::<P>() as u64)?;
        Mapped::of(file)
    }

    /// The page of another process.
    ///
    /// # Errors
    /// It is not there, or is not one.
    pub fn open(path: &Path) -> io::Result<Arc<Mapped<P>>> {
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() != size_of::<P>() as u64 {
            return Err(io::Error::other("not the page of a robot of this version"));
        }
        Mapped::of(file.into())
    }

    /// What a child process opens.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    fn of(file: OwnedFd) -> io::Result<Arc<Mapped<P>>> {
        // SAFETY: a new mapping of the file's whole length, which no process changes after `create`.
        let page = unsafe {
            mmap(
                std::ptr::null_mut(),
                size_of::<P>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file.as_fd(),
                0,
            )?
        };
        let page = NonNull::new(page.cast::<P>()).ok_or_else(|| io::Error::other("mapped at null"))?;
        Ok(Arc::new(Mapped { page, file }))
    }
}

impl<P: Plain> Deref for Mapped<P> {
    type Target = P;

    fn deref(&self) -> &P {
        // SAFETY: mapped with the page's size and at a page's alignment until `drop`; `Plain` is valid whatever the bytes.
        unsafe { self.page.as_ref() }
    }
}

impl<P: Plain> Drop for Mapped<P> {
    fn drop(&mut self) {
        // SAFETY: mapped by `of` with this size; nobody borrows from it any more.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), size_of::<P>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_opened_by_its_path_and_a_file_of_another_size_is_none() {
        let page = Mapped::<Time<1>>::create().unwrap();
        let again = Mapped::<Time<1>>::open(Path::new(&page.path())).unwrap();
        page.leave(0);
        assert!(!again.read().1);
        assert!(Mapped::<Time<1>>::open(Path::new("/proc/self/exe")).is_err());
    }
}
