//! Ports that nobody else takes: each is reserved by a locked file for as long as its cluster lives.
//!
//! The range lies below the one from which the kernel takes ports for outgoing connections, so that nothing
//! slips in between choosing a port and listening on it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use anyhow::{Context, Result, bail};

const RANGE: Range<u16> = 21_000..31_000;

/// A port on the loopback address; given back on drop.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// Locked while the port is ours; the kernel unlocks it when the process ends, however it ends.
    _lock: File,
}

impl Port {
    /// Reserves a free port.
    pub(crate) fn reserve() -> Result<Self> {
        let dir = std::env::temp_dir().join("fluxion-tests-ports");
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        // Processes start looking at different places, which saves most collisions.
        let width = u32::from(RANGE.end - RANGE.start);
        let offset = std::process::id().wrapping_mul(37) % width;
        for step in 0..width {
            let shift = u16::try_from((offset + step) % width).context("the range is narrower than u16")?;
            let number = RANGE.start + shift;
            let path = dir.join(number.to_string());
            let lock = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
            if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("no port between {} and {} is free on 127.0.0.1", RANGE.start, RANGE.end)
    }

    /// The number of the port.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_held_together_differ() {
        let ports: Vec<Port> = (0..20).map(|_| Port::reserve().unwrap()).collect();
        let numbers: BTreeSet<u16> = ports.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), ports.len());
        assert!(numbers.iter().all(|number| RANGE.contains(number)));
    }

    #[test]
    fn a_port_that_is_listened_on_is_not_given_out() {
        let first = Port::reserve().unwrap();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, first.number())).unwrap();
        let number = first.number();
        drop(first);
        assert_ne!(Port::reserve().unwrap().number(), number);
    }
}
