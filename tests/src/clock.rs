//! A clock that a test sets, for one process: libfaketime between it and the system's.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Where Debian's package libfaketime has it, for programs with several threads.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
const FOLDERS: [&str; 4] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];

/// A clock that is right at first.
#[derive(Debug)]
pub struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// One whose offset is kept in this folder. `None` where there is no libfaketime, which CI is never without.
    pub fn in_folder(folder: &Path) -> Result<Option<Self>> {
        let found = FOLDERS.iter().map(|folder| Path::new(folder).join(LIBRARY)).find(|path| path.is_file());
        let Some(library) = found else {
            ensure!(
                std::env::var_os("CI").is_none(),
                "libfaketime is not installed: apt-get install faketime"
            );
            eprintln!("skipped: libfaketime is not installed (apt-get install faketime)");
            return Ok(None);
        };
        let clock = Self { library, file: folder.join("clock") };
        clock.set(0)?;
        Ok(Some(clock))
    }

    /// Sets it so many seconds before or after the right time.
    pub fn set(&self, seconds: i64) -> Result<()> {
        // It is read at any time, and must be whole.
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("{seconds:+}s\n"))
            .and_then(|()| std::fs::rename(&next, &self.file))
            .with_context(|| format!("writing {}", self.file.display()))
    }

    /// Variables of a process that goes by it. Spans of time are still measured by the system's clock.
    pub fn environment(&self) -> Vec<(String, String)> {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_RESET", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_goes_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let Some(clock) = Clock::in_folder(folder.path()).unwrap() else { return };
        let ask = || {
            let mut command = std::process::Command::new("date");
            let output = command.arg("+%s").envs(clock.environment()).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
        };
        let now = ask();
        for offset in [3600, -3600] {
            clock.set(offset).unwrap();
            assert!((ask() - now - offset).abs() < 60);
        }
    }
}
