//! Ends processes when the one that started them is gone, however it went.
//!
//! Drop does the ordinary work; it never runs when a test process is killed. So a small shell holds the other
//! end of a pipe: it hears of each process that starts and ends, and when the pipe closes it kills the rest and
//! removes the folder.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

const SCRIPT: &str = r#"
alive=" "
keep=no
while read -r verb pid; do
    case $verb in
        started) alive="$alive$pid " ;;
        ended) alive=$(printf '%s' "$alive" | sed "s/ $pid / /") ;;
        keep) keep=yes ;;
    esac
done
for pid in $alive; do kill -s KILL -- "-$pid" 2>/dev/null; done
[ $keep = yes ] || rm -rf -- "$1"
"#;

/// A handle to the shell; clones talk to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    /// `None` once closed.
    pipe: Option<ChildStdin>,
    shell: Child,
}

impl Watchdog {
    /// Starts the shell; it removes `dir` at the end unless told to keep it.
    pub(crate) fn start(dir: &Path) -> Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "fluxion-tests-watchdog"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal reaches the test's group only: the shell must outlive it.
            .process_group(0)
            .spawn()
            .context("starting `sh` as watchdog")?;
        let pipe = shell.stdin.take();
        Ok(Self(Arc::new(Mutex::new(Inner { pipe, shell }))))
    }

    /// A process that leads its own group has started.
    pub(crate) fn started(&self, pid: u32) {
        self.tell(&format!("started {pid}\n"));
    }

    /// That process has ended and was waited for.
    pub(crate) fn ended(&self, pid: u32) {
        self.tell(&format!("ended {pid}\n"));
    }

    /// The folder is to stay, for a person to look at.
    pub(crate) fn keep(&self) {
        self.tell("keep\n");
    }

    fn tell(&self, line: &str) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = inner.pipe.as_mut() {
            // A shell that is gone can't be told; Drop still ends the processes.
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").process_group(0).spawn().unwrap()
    }

    fn ended_within(child: &mut Child, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if child.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    #[test]
    fn closing_the_pipe_kills_what_still_runs_and_removes_the_folder() {
        let dir = tempfile::tempdir().unwrap().keep();
        let (mut kept, mut told) = (sleeper(), sleeper());
        let watchdog = Watchdog::start(&dir).unwrap();
        watchdog.started(kept.id());
        watchdog.started(told.id());
        watchdog.ended(kept.id());
        drop(watchdog);
        assert!(ended_within(&mut told, Duration::from_secs(5)));
        assert!(!ended_within(&mut kept, Duration::from_millis(100)));
        assert!(!dir.exists());
        kept.kill().unwrap();
        kept.wait().unwrap();
    }

    #[test]
    fn a_folder_can_be_kept() {
        let dir = tempfile::tempdir().unwrap();
        let watchdog = Watchdog::start(dir.path()).unwrap();
        watchdog.keep();
        drop(watchdog);
        assert!(dir.path().exists());
    }
}
