//! How many files and connections this process may have open at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Left for connections to the API server, the database, and other files.
const RESERVED: u64 = 256;
/// All connections that clients may have, with those to another inspector.
const WANTED: u64 = 12 * 1024;

/// Raises the soft limit to the hard limit: it is often 1,024, for the sake of programs that use select(2). Where the
/// kernel refuses that (the hard limit may exceed its own, `fs.nr_open`), it is raised to what is needed.
pub fn raise() {
    if let Err(error) = raise_with(getrlimit(Resource::Nofile), |limit| setrlimit(Resource::Nofile, limit)) {
        tracing::warn!(%error, "failed to raise the limit on open files");
    }
}

fn raise_with<E>(limit: Rlimit, mut set: impl FnMut(Rlimit) -> Result<(), E>) -> Result<(), E> {
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    let enough = number(limit.maximum).min(RESERVED + WANTED);
    let mut done = Ok(());
    for current in [limit.maximum, Some(enough)] {
        if number(current) <= number(limit.current) {
            break;
        }
        done = set(Rlimit { current, maximum: limit.maximum });
        if done.is_ok() {
            break;
        }
    }
    done
}

/// How many of the `wanted` connections there may be at once, so that some files are left whoever connects.
pub fn share(wanted: usize) -> usize {
    share_of(getrlimit(Resource::Nofile).current, wanted)
}

fn share_of(limit: Option<u64>, wanted: usize) -> usize {
    let available = limit.unwrap_or(u64::MAX).saturating_sub(RESERVED).clamp(WANTED / 64, WANTED);
    let share = wanted as u64 * available / WANTED;
    usize::try_from(share).unwrap_or(wanted).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_few_files_may_be_open_fewer_connections_are_accepted() {
        assert_eq!(share_of(None, 1024), 1024);
        assert_eq!(share_of(Some(1 << 20), 1024), 1024);
        assert_eq!(share_of(Some(1024), 4096), 256);
        assert_eq!(share_of(Some(1024), 1024), 64);
        assert_eq!(share_of(Some(64), 1024), 16);
        assert_eq!(share_of(Some(0), 1), 1);
    }

    /// What is tried, and what has come of it, where the kernel allows that many.
    fn tried(current: u64, maximum: Option<u64>, allowed: u64) -> (Vec<Option<u64>>, Result<(), ()>) {
        let mut tried = Vec::new();
        let result = raise_with(Rlimit { current: Some(current), maximum }, |limit| {
            assert_eq!(limit.maximum, maximum);
            tried.push(limit.current);
            limit.current.filter(|current| *current <= allowed).map(drop).ok_or(())
        });
        (tried, result)
    }

    #[test]
    fn where_the_hard_limit_is_refused_what_is_needed_is_tried() {
        const ENOUGH: u64 = RESERVED + WANTED;
        assert_eq!(tried(1024, Some(1 << 20), 1 << 20), (vec![Some(1 << 20)], Ok(())));
        assert_eq!(tried(1024, None, 1 << 20), (vec![None, Some(ENOUGH)], Ok(())));
        assert_eq!(tried(1024, Some(1 << 30), 1 << 20), (vec![Some(1 << 30), Some(ENOUGH)], Ok(())));
        assert_eq!(tried(1024, Some(4096), 1024), (vec![Some(4096), Some(4096)], Err(())));
        // There is nothing to be raised, or what is needed is there.
        assert_eq!(tried(4096, Some(4096), 0), (vec![], Ok(())));
        assert_eq!(tried(1 << 20, Some(1 << 30), 1 << 20), (vec![Some(1 << 30)], Err(())));
    }

    #[test]
    fn the_limit_is_as_high_as_it_may_be() {
        raise();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
