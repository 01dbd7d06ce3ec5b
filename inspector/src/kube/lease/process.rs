//! Whether the process that holds the Lease is still running, if that can be known: only on the same machine.
//!
//! In doubt it is assumed to run, until its Lease expires.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Identifies a process among all others on this and other machines, and of earlier boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    boot: String,
    /// The PID namespace: PID 1 in another container is a different process.
    namespace: String,
    pid: u32,
    /// In clock ticks since boot: PIDs are reused.
    started: u64,
}

/// The directory where processes are looked up.
#[derive(Clone, Debug)]
pub(super) struct Processes(PathBuf);

impl Default for Processes {
    fn default() -> Self {
        Self("/proc".into())
    }
}

impl Processes {
    /// Our own process; none if unknown.
    pub(super) fn own(&self) -> Option<Process> {
        let text = |path: &str| std::fs::read_to_string(self.0.join(path)).ok();
        let link = |path: &str| Some(std::fs::read_link(self.0.join(path)).ok()?.to_str()?.to_owned());
        let pid = std::process::id();
        // In the /proc of another PID namespace, our PID is a different one.
        let (own, _) = (link("self")?.parse() == Ok(pid)).then(|| stat(&text("self/stat")?)).flatten()?;
        let boot = text("sys/kernel/random/boot_id")?.trim().to_owned();
        Some(Process { boot, namespace: link("self/ns/pid")?, pid, started: own })
    }

    /// Whether `other` has certainly exited.
    pub(super) fn gone(&self, other: &Process) -> bool {
        let Some(own) = self.own() else { return false };
        if (&own.boot, &own.namespace) != (&other.boot, &other.namespace) {
            return false;
        }
        // /proc may hide the processes of other users.
        if !self.0.join("1/stat").exists() {
            return false;
        }
        match std::fs::read_to_string(self.0.join(Path::new(&other.pid.to_string())).join("stat")) {
            Ok(text) => stat(&text)
                .is_some_and(|(started, state)| started != other.started || matches!(state, 'Z' | 'X')),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }
}

/// Start time and state of the process. Its name is in parentheses and may contain any character.
fn stat(text: &str) -> Option<(u64, char)> {
    let mut rest = text.rsplit_once(')')?.1.split_whitespace();
    let state = rest.next()?.chars().next()?;
    Some((rest.nth(18)?.parse().ok()?, state))
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {} {}", self.boot, self.namespace, self.pid, self.started)
    }
}

impl std::str::FromStr for Process {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [boot, namespace, pid, started] = parts[..] else { return Err(()) };
        Ok(Self {
            boot: boot.to_owned(),
            namespace: namespace.to_owned(),
            pid: pid.parse().map_err(drop)?,
            started: started.parse().map_err(drop)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn only_a_process_of_this_machine_that_is_certainly_dead_is_gone() {
        let here = Processes::default();
        let own = here.own().unwrap();
        assert_eq!(own.to_string().parse(), Ok(own.clone()));
        assert!(!here.gone(&own));

        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let path = format!("/proc/{}/stat", child.id());
        let (started, _) = stat(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let other = Process { pid: child.id(), started, ..own.clone() };
        assert!(!here.gone(&other));
        assert!(here.gone(&Process { started: started + 1, ..other.clone() }), "its pid was used again");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(here.gone(&other));
        assert!(!here.gone(&Process { boot: "another machine".to_owned(), ..other.clone() }));
        assert!(!here.gone(&Process { namespace: "pid:[1]".to_owned(), ..other.clone() }));
        let hidden = tempfile::tempdir().unwrap();
        assert!(!Processes(hidden.path().to_owned()).gone(&other));
    }

    #[test]
    fn a_name_with_parentheses_is_read_over() {
        let text = "7 (a) Z 1) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        assert_eq!(stat(text), Some((4711, 'S')));
        assert_eq!(stat("7 (a)"), None);
    }
}
