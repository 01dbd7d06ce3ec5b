//! The cluster, from the command line and the trace's header.

use anyhow::{Context, Result, bail};
use fluxion_scheduler::sim::Machine;

use crate::arguments::Arguments;
use crate::words::note;

/// The cluster according to a trace's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// `MaxNodes`.
    pub(crate) nodes: Option<u32>,
    /// `MaxProcs`.
    pub(crate) processors: Option<u32>,
}

/// The cluster to simulate; says if it differs from the trace's.
pub(crate) fn machine(arguments: &Arguments, header: Header) -> Result<Machine> {
    let (nodes, cores) = size(arguments.nodes, arguments.cores_per_node, header)?;
    if let Some(mismatch) = mismatch(nodes, cores, header) {
        note(&mismatch);
    }
    let enforce_limits = !arguments.measuring.allow_overruns;
    Ok(Machine {
        nodes,
        cores,
        whole_nodes: arguments.whole_nodes,
        enforce_limits,
        each_node: arguments.each_node,
    })
}

/// Numbers of nodes and of cores per node.
fn size(nodes: Option<u32>, cores: Option<u32>, header: Header) -> Result<(u32, u32)> {
    let even = |count: u32, by: u32, what: &str| {
        if !count.is_multiple_of(by) {
            bail!(
                "MaxProcs {count} in the header of the trace is not a multiple of {what}: \
                 use --nodes and --cores-per-node"
            );
        }
        Ok(count / by)
    };
    let cores = match (cores, header.nodes, header.processors) {
        (Some(cores), ..) => cores,
        // Who gives the number of nodes means them as they are, whatever the header can't be divided into.
        (None, Some(max), Some(processors)) if nodes.is_some() && !processors.is_multiple_of(max) => 1,
        (None, Some(max), Some(processors)) => even(processors, max, &format!("MaxNodes {max}"))?,
        (None, ..) => 1,
    };
    let nodes = match (nodes, header.nodes, header.processors) {
        (Some(nodes), ..) | (None, Some(nodes), _) => nodes,
        (None, None, Some(processors)) => even(processors, cores, &format!("{cores} cores per node"))?,
        (None, None, None) => {
            return None.context("--nodes is required: the trace has no header with MaxNodes or MaxProcs");
        }
    };
    Ok((nodes, cores))
}

/// What is said if the cluster has another size than the trace's.
fn mismatch(nodes: u32, cores: u32, header: Header) -> Option<String> {
    let simulated = u64::from(nodes) * u64::from(cores);
    let (says, key) = match header {
        Header { processors: Some(processors), .. } => (processors, "MaxProcs"),
        // The number of cores of its nodes is not known.
        Header { nodes: Some(max), .. } if nodes != max => (max, "MaxNodes"),
        Header { .. } => return None,
    };
    let differs = u64::from(says) != simulated;
    let nodes = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    let simulated = format!("the simulated cluster has {nodes} with {simulated} cores");
    differs.then(|| format!("the header of the trace has {key} {says}, but {simulated}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_the_default() {
        let header = |nodes, processors| Header { nodes, processors };
        let both = header(Some(64), Some(128));
        assert_eq!(size(None, None, both).unwrap(), (64, 2));
        assert_eq!(size(Some(32), None, both).unwrap(), (32, 2));
        assert_eq!(size(Some(1), Some(128), both).unwrap(), (1, 128));
        assert_eq!(size(None, None, header(None, Some(128))).unwrap(), (128, 1));
        assert_eq!(size(None, Some(8), header(None, Some(128))).unwrap(), (16, 8));
        assert_eq!(size(None, None, header(Some(64), None)).unwrap(), (64, 1));
        assert!(size(None, None, header(Some(100), Some(338))).is_err());
        assert_eq!(size(Some(338), None, header(Some(100), Some(338))).unwrap(), (338, 1));
        assert!(size(None, Some(3), header(None, Some(128))).is_err());
        assert!(size(None, Some(3), header(None, None)).is_err());
    }

    #[test]
    fn another_size_is_said() {
        let header = Header { nodes: Some(64), processors: Some(128) };
        assert_eq!(mismatch(1, 128, header), None);
        assert!(mismatch(64, 1, header).unwrap().contains("MaxProcs 128"));
        let nodes = Header { processors: None, ..header };
        assert_eq!(mismatch(64, 8, nodes), None);
        assert_eq!(mismatch(1, 64, nodes), None);
        assert!(mismatch(63, 1, nodes).unwrap().contains("MaxNodes 64"));
    }
}
