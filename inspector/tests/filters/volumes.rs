//! Random volumes: classes, drivers, claims, and what Pods mount.

use fluxion_tests::random::Dice;
use serde_json::{Value, json};

use crate::nodes::{HOST, ZONE};

/// The storage objects of a cluster.
pub(crate) struct Volumes {
    /// Part of the name of everything in this cluster.
    prefix: String,
    nodes: Vec<String>,
    pub(crate) objects: Vec<Value>,
    /// Bound claims by namespace, which any Pod may mount.
    bound: Vec<(String, String)>,
    claims: usize,
}

fn object(api: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "uid": format!("uid-{name}")}})
}

fn claim(name: &str, namespace: &str, class: &str, size: &str) -> Value {
    let mut claim = object("v1", "PersistentVolumeClaim", name);
    claim["metadata"]["namespace"] = json!(namespace);
    claim["metadata"]["annotations"] = json!({});
    claim["spec"] = json!({"storageClassName": class, "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem", "resources": {"requests": {"storage": size}}});
    claim["status"] = json!({"phase": "Pending"});
    claim
}

impl Volumes {
    pub(crate) fn new(dice: &mut Dice, prefix: &str, nodes: &[String]) -> Self {
        let (prefix, nodes) = (prefix.to_owned(), nodes.to_vec());
        let mut volumes = Self { prefix, nodes, objects: Vec::new(), bound: Vec::new(), claims: 0 };
        volumes.classes(dice);
        volumes.drivers(dice);
        volumes
    }

    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn classes(&mut self, dice: &mut Dice) {
        for (name, provisioner, waits) in [
            ("dynamic", "csi", true),
            ("zone", "csi", true),
            ("zones", "csi", true),
            ("capacity", "capacity", true),
            ("static", "kubernetes.io/no-provisioner", true),
            ("immediate", "csi", false),
        ] {
            let provisioner =
                if provisioner.contains('/') { provisioner.to_owned() } else { self.name(provisioner) };
            let mut class = object("storage.k8s.io/v1", "StorageClass", &self.name(name));
            class["provisioner"] = json!(provisioner);
            class["volumeBindingMode"] = json!(if waits { "WaitForFirstConsumer" } else { "Immediate" });
            let place =
                |key: &str, values: Value| json!({"matchLabelExpressions": [{"key": key, "values": values}]});
            match name {
                "zone" => class["allowedTopologies"] = json!([place(ZONE, json!([dice.one(&["a", "b"])]))]),
                "zones" => {
                    class["allowedTopologies"] =
                        json!([place(ZONE, json!(["b", "c"])), place("rack", json!(["r"]))]);
                }
                _ => {}
            }
            self.objects.push(class);
        }
    }

    fn drivers(&mut self, dice: &mut Dice) {
        for name in ["csi", "capacity"] {
            let mut driver = object("storage.k8s.io/v1", "CSIDriver", &self.name(name));
            driver["spec"] = json!({"storageCapacity": name == "capacity"});
            if dice.rarely(8) {
                driver["spec"]["preventPodSchedulingIfMissing"] = json!(true);
            }
            self.objects.push(driver);
        }
        for (at, (zone, field)) in
            [("a", "capacity"), ("b", "maximumVolumeSize"), ("b", "capacity")].into_iter().enumerate()
        {
            let mut room =
                object("storage.k8s.io/v1", "CSIStorageCapacity", &self.name(&format!("room-{at}")));
            room["metadata"]["namespace"] = json!("default");
            room["storageClassName"] = json!(self.name("capacity"));
            room["capacity"] = json!("50Gi");
            room[field] = json!(dice.one(&["1Gi", "5Gi", "8Gi"]));
            room["nodeTopology"] = json!({"matchLabels": {ZONE: zone}});
            self.objects.push(room);
        }
        for node in self.nodes.clone() {
            if dice.rarely(3) {
                continue;
            }
            let mut drivers = json!([{"name": self.name("csi"), "nodeID": node, "topologyKeys": [ZONE]}]);
            if !dice.rarely(3) {
                drivers[0]["allocatable"] = json!({"count": dice.roll(4)});
            }
            if dice.rarely(4) {
                drivers = json!([]);
            }
            let mut csi = object("storage.k8s.io/v1", "CSINode", &node);
            csi["spec"] = json!({"drivers": drivers});
            self.objects.push(csi);
        }
    }

    fn affinity(&self, dice: &mut Dice) -> Value {
        let expression = match dice.roll(5) {
            0 => return Value::Null,
            1 => ("matchExpressions", HOST, self.nodes[dice.roll(self.nodes.len())].as_str()),
            2 => ("matchFields", "metadata.name", self.nodes[dice.roll(self.nodes.len())].as_str()),
            _ => ("matchExpressions", ZONE, dice.one(&["a", "b"])),
        };
        let (list, key, value) = expression;
        json!({"required": {"nodeSelectorTerms": [{list: [{"key": key, "operator": "In", "values": [value]}]}]}})
    }

    /// A volume of 1, 3 or 6 GiB.
    fn volume(&self, dice: &mut Dice, name: &str, class: &str, csi: bool) -> Value {
        let mut volume = object("v1", "PersistentVolume", name);
        volume["metadata"]["resourceVersion"] = json!("1");
        volume["spec"] = json!({
            "capacity": {"storage": dice.one(&["1Gi", "3Gi", "6Gi"])}, "storageClassName": class,
            "accessModes": if dice.rarely(3) { json!(["ReadWriteMany"]) } else { json!(["ReadWriteOnce", "ReadOnlyMany"]) },
            "persistentVolumeReclaimPolicy": "Retain", "nodeAffinity": self.affinity(dice),
            "volumeMode": if dice.rarely(6) { "Block" } else { "Filesystem" },
        });
        if csi {
            // Some handles are the same.
            let handle = if dice.rarely(6) { "same" } else { name };
            volume["spec"]["csi"] = json!({"driver": self.name("csi"), "volumeHandle": handle});
        } else {
            volume["spec"]["hostPath"] = json!({"path": "/x"});
        }
        volume["metadata"]["labels"] = json!({"tier": dice.one(&["fast", "slow"])});
        if dice.rarely(4) {
            let key =
                dice.one(&[ZONE, "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"]);
            volume["metadata"]["labels"][key] = json!(dice.one(&["a", "b", "a__b", "r", "a__"]));
        }
        volume["status"] = json!({"phase": "Available"});
        volume
    }

    fn next(&mut self) -> String {
        self.claims += 1;
        self.name(&format!("claim-{}", self.claims))
    }

    /// A claim that is bound to a volume.
    pub(crate) fn bind(&mut self, dice: &mut Dice, namespace: &str) -> String {
        let name = self.next();
        let csi = !dice.rarely(3);
        let mode = dice.one(&["ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"]);
        let mut volume = self.volume(dice, &name, "bound", csi);
        volume["spec"]["accessModes"] = json!([mode]);
        volume["spec"]["claimRef"] =
            json!({"namespace": namespace, "name": name, "uid": format!("uid-{name}")});
        volume["status"]["phase"] = json!("Bound");
        let mut claim = claim(&name, namespace, "bound", "1Gi");
        claim["spec"]["accessModes"] = json!([mode]);
        claim["spec"]["volumeName"] = json!(name);
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = json!("yes");
        claim["status"]["phase"] = json!("Bound");
        if csi && dice.rarely(6) {
            let node = self.nodes[dice.roll(self.nodes.len())].clone();
            let mut attachment = object("storage.k8s.io/v1", "VolumeAttachment", &format!("{name}-attached"));
            attachment["spec"] = json!({"attacher": self.name("csi"), "nodeName": node,
                "source": {"persistentVolumeName": name}});
            self.objects.push(attachment);
        }
        self.objects.extend([volume, claim]);
        self.bound.push((namespace.to_owned(), name.clone()));
        name
    }

    /// A claim without a volume.
    fn unbound(&mut self, dice: &mut Dice, namespace: &str) -> String {
        let name = self.next();
        let class =
            dice.one(&["dynamic", "zone", "zones", "capacity", "static", "static", "static", "immediate"]);
        let size = dice.one(&["1Gi", "3Gi", "6Gi", "20Gi"]);
        let mut claim = claim(&name, namespace, &self.name(class), size);
        if dice.rarely(4) {
            claim["spec"]["selector"] = json!({"matchLabels": {"tier": "fast"}});
        }
        if dice.rarely(4) {
            claim["spec"]["accessModes"] = json!(["ReadWriteMany"]);
        }
        if dice.rarely(8) {
            claim["spec"]["volumeMode"] = json!("Block");
        }
        if class != "static" && dice.rarely(4) {
            let node = self.nodes[dice.roll(self.nodes.len())].clone();
            claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = json!(node);
        }
        if dice.rarely(12) {
            claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        if dice.rarely(12) {
            claim["status"]["phase"] = json!("Lost");
        }
        if dice.rarely(12) {
            claim["spec"]["volumeName"] = json!(self.name("nothing"));
        }
        if class == "static" {
            for index in 0..dice.roll(3) {
                let class = self.name("static");
                let mut volume = self.volume(dice, &format!("{name}-pv-{index}"), &class, false);
                match dice.roll(10) {
                    0 => volume["status"]["phase"] = json!("Released"),
                    1 => {
                        let claimant = json!({"namespace": namespace, "name": name});
                        volume["spec"]["claimRef"] = claimant;
                    }
                    2 => volume["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
                    _ => {}
                }
                self.objects.push(volume);
            }
        }
        self.objects.push(claim);
        name
    }

    /// Adds random volumes to a Pod. Claims of Pods that run are bound.
    pub(crate) fn mount(&mut self, dice: &mut Dice, pod: &mut Value, runs: bool) {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap().to_owned();
        let mut volumes = Vec::new();
        for at in 0..=usize::from(dice.rarely(3)) {
            let mounted = |name: String| json!({"persistentVolumeClaim": {"claimName": name}});
            let known: Vec<String> =
                self.bound.iter().filter(|(of, _)| *of == namespace).map(|(_, name)| name.clone()).collect();
            let mut volume = match dice.roll(8) {
                0 => {
                    let disk = json!({"monitors": [dice.one(&["x", "y"])], "image": "image",
                        "readOnly": dice.rarely(2)});
                    json!({"rbd": disk})
                }
                1 if !known.is_empty() => mounted(known[dice.roll(known.len())].clone()),
                2 if !runs && dice.rarely(6) => mounted(self.name("missing")),
                3..=6 if !runs => mounted(self.unbound(dice, &namespace)),
                _ => mounted(self.bind(dice, &namespace)),
            };
            volume["name"] = json!(format!("v{at}"));
            volumes.push(volume);
        }
        pod["spec"]["volumes"] = json!(volumes);
    }
}
