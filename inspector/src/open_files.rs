//! How many files and connections this process may have open at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Left for connections to the API server, the database, and other files.
const RESERVED: u64 = 256;
/// All connections that clients may have, with those to another inspector.
const WANTED: u64 = 12 * 1024;

/// Raises the soft limit to the hard limit: it is often 1,024, for the sake of programs that use select(2).
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "failed to raise the limit on open files");
    }
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

    #[test]
    fn the_limit_is_as_high_as_it_may_be() {
        raise();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
