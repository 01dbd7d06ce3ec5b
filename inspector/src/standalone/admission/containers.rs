//! Containers: names, ports, resources, mounts. The image is optional, because none is pulled.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, ContainerPort, PodSpec};

use super::problems::{Path, Problems, one_of};
use super::quantities::{ResourceOwner, requirements};
use super::syntax::{dns_label, port_name};

/// All containers of a Pod with these volumes.
pub(super) fn all(spec: &PodSpec, volumes: &BTreeSet<&str>, path: &Path<'_>, problems: &mut Problems) {
    let list = path.field("containers");
    if spec.containers.is_empty() {
        problems.required(&list, "");
    }
    let on_host = spec.host_network == Some(true);
    let (mut names, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for (index, container) in spec.containers.iter().enumerate() {
        let path = list.item(index);
        one(container, volumes, &mut names, &path, problems);
        ports(container, on_host, &mut taken, &path, problems);
        if container.restart_policy.as_deref().is_some_and(|policy| !policy.is_empty()) {
            problems.forbidden(&path.field("restartPolicy"), "may not be set for non-init containers");
        }
    }
    let list = path.field("initContainers");
    for (index, container) in spec.init_containers.iter().flatten().enumerate() {
        let path = list.item(index);
        one(container, volumes, &mut names, &path, problems);
        // A container that ends before the next one starts shares its ports with no other.
        ports(container, on_host, &mut BTreeSet::new(), &path, problems);
        one_of(container.restart_policy.as_deref(), &["Always"], |text, values| {
            problems.unsupported(&path.field("restartPolicy"), text, values);
        });
    }
    let claims: BTreeSet<&str> =
        spec.resource_claims.iter().flatten().map(|claim| claim.name.as_str()).collect();
    for (field, containers) in
        [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())]
    {
        let list = path.field(field);
        for (index, container) in containers.into_iter().flatten().enumerate() {
            let wanted = container.resources.as_ref().and_then(|resources| resources.claims.as_ref());
            for (at, claim) in wanted.into_iter().flatten().enumerate() {
                if !claims.contains(claim.name.as_str()) {
                    let item = list.item(index);
                    let resources = item.field("resources");
                    problems.not_found(&resources.field("claims").item(at), &claim.name);
                }
            }
        }
    }
}

fn one<'a>(
    container: &'a Container,
    volumes: &BTreeSet<&str>,
    names: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let name = path.field("name");
    if container.name.is_empty() {
        problems.required(&name, "");
    } else {
        problems.names(&name, &container.name, dns_label(&container.name));
        if !names.insert(&container.name) {
            problems.duplicate(&name, &container.name);
        }
    }
    if let Some(resources) = &container.resources {
        requirements(resources, ResourceOwner::Container, &path.field("resources"), problems);
    }
    let list = path.field("volumeMounts");
    let mut mounted = BTreeSet::new();
    for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
        let path = list.item(index);
        if mount.name.is_empty() {
            problems.required(&path.field("name"), "");
        } else if !volumes.contains(mount.name.as_str()) {
            problems.not_found(&path.field("name"), &mount.name);
        }
        if mount.mount_path.is_empty() {
            problems.required(&path.field("mountPath"), "");
        } else if !mounted.insert(&mount.mount_path) {
            problems.invalid(&path.field("mountPath"), &mount.mount_path, "must be unique");
        }
    }
}

/// Ports; `taken` are those used on the node, by protocol, address and number.
fn ports(
    container: &Container,
    on_host: bool,
    taken: &mut BTreeSet<String>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let list = path.field("ports");
    let mut names = BTreeSet::new();
    for (index, port) in container.ports.iter().flatten().enumerate() {
        let path = list.item(index);
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            problems.names(&path.field("name"), name, port_name(name));
            if !names.insert(name) {
                problems.duplicate(&path.field("name"), name);
            }
        }
        one_port(port, on_host, &path, problems);
        if let Some(host_port) = port.host_port.filter(|port| *port != 0) {
            let address = port.host_ip.as_deref().unwrap_or_default();
            let key = format!("{}/{address}/{host_port}", port.protocol.as_deref().unwrap_or("TCP"));
            if taken.contains(&key) {
                problems.duplicate(&path.field("hostPort"), &key);
            }
            taken.insert(key);
        }
    }
}

fn one_port(port: &ContainerPort, on_host: bool, path: &Path<'_>, problems: &mut Problems) {
    const RANGE: &str = "must be between 1 and 65535, inclusive";
    let outside = |number: i32| !(1..=65_535).contains(&number);
    if port.container_port == 0 {
        problems.required(&path.field("containerPort"), "");
    } else if outside(port.container_port) {
        problems.invalid(&path.field("containerPort"), port.container_port, RANGE);
    }
    if let Some(host_port) = port.host_port.filter(|port| *port != 0) {
        let path = path.field("hostPort");
        if outside(host_port) {
            problems.invalid(&path, host_port, RANGE);
        } else if on_host && host_port != port.container_port {
            problems.invalid(&path, host_port, "must match `containerPort` when `hostNetwork` is true");
        }
    }
    one_of(port.protocol.as_deref(), &["SCTP", "TCP", "UDP"], |text, values| {
        problems.unsupported(&path.field("protocol"), text, values);
    });
    if let Some(address) = port.host_ip.as_deref().filter(|address| !address.is_empty())
        && address.parse::<IpAddr>().is_err()
    {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        problems.invalid(&path.field("hostIP"), address, why);
    }
}
