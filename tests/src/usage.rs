//! What a process takes: memory and processor time, as the kernel counts them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

/// Of a second, as in /proc/PID/stat (`USER_HZ`).
const TICKS: u64 = 100;

/// What a process has taken so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Resident memory now, in MB.
    pub resident: u64,
    /// The most that was resident, in MB.
    pub peak: u64,
    /// Processor time of all threads.
    pub processor: Duration,
}

impl Usage {
    /// Of the process with this id.
    pub fn of(pid: u32) -> Result<Self> {
        let status = read(format!("/proc/{pid}/status"))?;
        let kilobytes = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
            let number = line.split_whitespace().nth(1).context("no number")?;
            Ok(number.parse::<u64>()?)
        };
        Ok(Self {
            resident: kilobytes("VmRSS")? / 1024,
            peak: kilobytes("VmHWM")? / 1024,
            processor: processor(&read(format!("/proc/{pid}/stat"))?)?,
        })
    }

    /// Processor time of the threads of this name (its first 15 bytes).
    pub fn of_threads(pid: u32, name: &str) -> Result<Duration> {
        let mut all = Duration::ZERO;
        let folder = format!("/proc/{pid}/task");
        for task in std::fs::read_dir(&folder).with_context(|| format!("reading {folder}"))? {
            let task = task?.path();
            // A thread may end at any time.
            let (Ok(comm), Ok(stat)) = (read(task.join("comm")), read(task.join("stat"))) else { continue };
            if comm.trim() == name {
                all += processor(&stat)?;
            }
        }
        Ok(all)
    }
}

fn read(path: impl Into<PathBuf>) -> Result<String> {
    let path = path.into();
    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// utime and stime of a line of /proc/PID/stat; the name before them may contain anything.
fn processor(stat: &str) -> Result<Duration> {
    let (_, rest) = stat.rsplit_once(')').context("no name")?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || -> Result<u64> { Ok(fields.next().context("too few fields")?.parse()?) };
    Ok(Duration::from_millis((ticks()? + ticks()?) * (1000 / TICKS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_something() {
        let before = Usage::of(std::process::id()).unwrap();
        let much = vec![1_u8; 64 << 20];
        while Usage::of(std::process::id()).unwrap().processor < before.processor + Duration::from_millis(30)
        {
            std::hint::black_box(&much);
        }
        let after = Usage::of(std::process::id()).unwrap();
        assert!(after.peak >= 64, "{before:?} {after:?}");
    }

    #[test]
    fn names_with_spaces_are_skipped() {
        let line = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 1 0 5 1 1";
        assert_eq!(processor(line).unwrap(), Duration::from_millis(420));
    }
}
