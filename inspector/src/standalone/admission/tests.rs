use super::*;
use serde_json::{Value, json};

fn admitted(value: Value) -> Result<Value, Refused> {
    let mut object = Object::from_value(value).unwrap();
    let classes = |class: Option<&str>| (class == Some("urgent")).then_some(1000);
    admit(&mut object, 1_700_000_000, 1, &["fluxion".into(), "fluence".into()], &classes)?;
    Ok(object.to_value())
}

fn pod(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

/// A valid object of each kind.
fn valid(kind: &str) -> Value {
    let template = |policy: &str| {
        json!({"metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c"}], "restartPolicy": policy}})
    };
    let (api_version, rest) = match kind {
        "Pod" => ("v1", json!({"spec": {"containers": [{"name": "c"}]}})),
        "Node" => ("v1", json!({"status": {"capacity": {"cpu": "4"}}})),
        "Job" => ("batch/v1", json!({"spec": {"template": template("Never")}})),
        "Deployment" | "ReplicaSet" | "StatefulSet" => {
            let selector = json!({"matchLabels": {"app": "x"}});
            ("apps/v1", json!({"spec": {"selector": selector, "template": template("Always")}}))
        }
        "PodGroup" => {
            ("scheduling.k8s.io/v1beta1", json!({"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}))
        }
        "PriorityClass" => ("scheduling.k8s.io/v1", json!({"value": 1})),
        other => panic!("{other}"),
    };
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

/// The object with a value put where a path of keys leads; a list is made where a number is next.
fn with(mut object: Value, path: &str, value: Value) -> Value {
    let mut at = &mut object;
    for part in path.split(' ') {
        at = match part.parse::<usize>() {
            Ok(index) => {
                if at.is_null() {
                    *at = json!([]);
                }
                let list = at.as_array_mut().unwrap();
                while list.len() <= index {
                    list.push(Value::Null);
                }
                &mut list[index]
            }
            Err(_) => &mut at[part],
        };
    }
    *at = value;
    object
}

#[track_caller]
fn refused(object: &Value, wanted: &str) {
    let said = admitted(object.clone()).map_or_else(|error| error.to_string(), |_| "taken".to_owned());
    assert!(
        said == wanted || wanted.strip_suffix('…').is_some_and(|start| said.starts_with(start)),
        "{object}\nsays  {said}\nwant  {wanted}"
    );
}

#[test]
fn a_pod_is_completed() {
    let got = admitted(pod(json!({"containers": [{"name": "c", "resources": {
        "limits": {"cpu": "2", "nvidia.com/gpu": 1}, "requests": {"cpu": "1"}}}],
        "schedulerName": "default-scheduler", "priorityClassName": "urgent"})))
    .unwrap();
    assert_eq!(got["metadata"]["namespace"], "default");
    assert_eq!(got["metadata"]["creationTimestamp"], "2023-11-14T22:13:20Z");
    assert_eq!(got["spec"]["schedulerName"], "fluxion");
    assert_eq!(got["spec"]["priority"], 1000);
    assert_eq!(got["status"]["phase"], "Pending");
    let requests = &got["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(requests, &json!({"cpu": "1", "nvidia.com/gpu": "1"}));
}

#[test]
fn who_is_placed_already_stays_with_who_placed_it() {
    let got =
        admitted(pod(json!({"containers": [{"name": "c"}], "nodeName": "n1", "schedulerName": "other"})));
    assert_eq!(got.unwrap()["spec"]["schedulerName"], "other");
    let ours = admitted(pod(json!({"containers": [{"name": "c"}], "schedulerName": "fluence"}))).unwrap();
    assert_eq!(ours["spec"]["schedulerName"], "fluence");
}

#[test]
fn what_is_valid_is_taken() {
    for kind in ["Pod", "Node", "Job", "Deployment", "ReplicaSet", "StatefulSet", "PodGroup", "PriorityClass"]
    {
        admitted(valid(kind)).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
    let resources = |limits: Value, requests: Value| {
        with(valid("Pod"), "spec containers 0 resources", json!({"limits": limits, "requests": requests}))
    };
    for (object, what) in [
        (resources(json!({"nvidia.com/gpu": "2.0"}), json!({})), "a whole number with a point"),
        (resources(json!({"nvidia.com/gpu": "2000m"}), json!({})), "a whole number in thousandths"),
        (resources(json!({"nvidia.com/gpu": "1e0"}), json!({})), "a whole number with an exponent"),
        (resources(json!({"nvidia.com/gpu": 2}), json!({"nvidia.com/gpu": "2"})), "a request like its limit"),
        (resources(json!({}), json!({"cpu": "0.5", "memory": "1.5Gi"})), "requests without limits"),
        (resources(json!({"cpu": "1", "hugepages-2Mi": "4Mi"}), json!({})), "huge pages"),
        (resources(json!({}), json!({"kubernetes.io/odd": "1"})), "a native resource with a domain"),
        (with(valid("Pod"), "metadata name", json!("a.b-c.d")), "a name with dots"),
        (with(valid("Pod"), "metadata labels", json!({"example.com/A_b.c": "", "x": "V-1"})), "labels"),
        (with(valid("Pod"), "metadata generateName", json!("a-")), "a generated name"),
        (with(valid("Pod"), "spec tolerations 0", json!({"operator": "Exists"})), "everything is tolerated"),
        (with(valid("Pod"), "spec nodeSelector", json!({"disk": ""})), "an empty value"),
        (
            with(
                valid("Pod"),
                "spec containers 0 ports",
                json!([
                {"containerPort": 80, "hostPort": 80}, {"containerPort": 80, "hostPort": 80, "protocol": "UDP"}]),
            ),
            "a port of two protocols",
        ),
        (
            with(
                with(valid("Job"), "metadata uid", json!("u")),
                "spec selector",
                json!({"matchLabels": {"controller-uid": "u"}}),
            ),
            "a Job as an API server prints it",
        ),
    ] {
        admitted(object).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

#[test]
fn amounts_are_whole_where_pieces_are_counted_and_limits_hold() {
    let at = "spec.containers[0].resources";
    for (resources, wanted) in [
        (
            json!({"limits": {"nvidia.com/gpu": "0.5"}}),
            vec![
                "limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
                "requests[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
            ],
        ),
        (
            json!({"limits": {"nvidia.com/gpu": 0.5}}),
            vec![
                "limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
                "requests[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
            ],
        ),
        (
            json!({"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
            vec!["requests: Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2"],
        ),
        (
            json!({"requests": {"nvidia.com/gpu": 1, "cpu": 1}}),
            vec!["limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            json!({"requests": {"cpu": 2}, "limits": {"cpu": 1}}),
            vec!["requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"],
        ),
        (
            json!({"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}),
            vec!["requests: Invalid value: \"2Gi\": must be less than or equal to memory limit of 1Gi"],
        ),
        (
            json!({"requests": {"memory": "-1Gi"}}),
            vec!["requests[memory]: Invalid value: \"-1Gi\": must be greater than or equal to 0"],
        ),
        (
            json!({"requests": {"cpu": "1,5"}}),
            vec![
                "requests[cpu]: Invalid value: \"1,5\": invalid quantity \"1,5\": unknown suffix \",5\" \
             (must be n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent)",
            ],
        ),
        (
            json!({"requests": {"cpu": ""}}),
            vec!["requests[cpu]: Invalid value: \"\": invalid quantity \"\": no digits"],
        ),
        (
            json!({"requests": {"gpu": 1}}),
            vec!["requests[gpu]: Invalid value: \"gpu\": must be a standard resource for containers"],
        ),
        (
            json!({"requests": {"pods": 1}}),
            vec!["requests[pods]: Invalid value: \"pods\": must be a standard resource for containers"],
        ),
        (
            json!({"limits": {"requests.a.com/b": 1}}),
            vec![
                "limits[requests.a.com/b]: Invalid value: \"requests.a.com/b\": doesn't follow extended resource name standard",
                "requests[requests.a.com/b]: Invalid value: \"requests.a.com/b\": doesn't follow extended resource name standard",
            ],
        ),
        (
            json!({"limits": {"/b": 1}, "requests": {"/b": 1}}),
            vec![
                "limits[/b]: Invalid value: \"/b\": prefix part must be non-empty",
                "requests[/b]: Invalid value: \"/b\": prefix part must be non-empty",
            ],
        ),
        (
            json!({"limits": {"cpu": 1, "hugepages-2Mi": "3Mi"}}),
            vec![
                "limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                "requests[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
            ],
        ),
        (
            json!({"limits": {"cpu": 1, "hugepages-2Mi": "4Mi"}, "requests": {"hugepages-2Mi": "2Mi"}}),
            vec!["requests: Invalid value: \"2Mi\": must be equal to hugepages-2Mi limit of 4Mi"],
        ),
        (json!({"limits": {"hugepages-2Mi": "4Mi"}}), vec![": Forbidden: HugePages require cpu or memory"]),
    ] {
        let dot = |text: &str| if text.starts_with(':') { "" } else { "." };
        let wanted: Vec<String> = wanted.iter().map(|text| format!("{at}{}{text}", dot(text))).collect();
        let wanted = if wanted.len() == 1 { wanted[0].clone() } else { format!("[{}]", wanted.join(", ")) };
        refused(&with(valid("Pod"), "spec containers 0 resources", resources), &wanted);
    }
}

/// What the API server is asked to take, row by row: each differs from a valid object in one place.
#[test]
fn each_rule_of_an_api_server_is_kept() {
    let rows: Vec<&str> =
        include_str!("tests/rules.txt").lines().filter(|row| !row.starts_with('#')).collect();
    assert!(rows.len() > 80);
    for row in rows {
        let parts: Vec<&str> = row.splitn(4, " | ").collect();
        let [kind, path, value, wanted] = parts.as_slice() else { panic!("{row}") };
        refused(&with(valid(kind), path, serde_json::from_str(value).unwrap()), wanted);
    }
}

#[test]
fn what_is_too_long_is_refused_and_cut() {
    let (long, shown) = ("x".repeat(300), "x".repeat(64));
    let annotation = "x".repeat(256 << 10);
    for (kind, path, value, wanted) in [
        (
            "Pod",
            "metadata name",
            json!(long),
            format!("metadata.name: Invalid value: \"{shown}…\": must be no more than 253 bytes"),
        ),
        (
            "Pod",
            "metadata labels",
            json!({&long: "b"}),
            format!("metadata.labels: Invalid value: \"{shown}…\": name part must be no more than 63 bytes"),
        ),
        (
            "Pod",
            "metadata labels",
            json!({"a": long}),
            format!("metadata.labels[a]: Invalid value: \"{shown}…\": must be no more than 63 bytes"),
        ),
        (
            "Pod",
            "metadata annotations",
            json!({"a": annotation}),
            "metadata.annotations: Too long: may not be more than 262144 bytes".to_owned(),
        ),
        (
            "Job",
            "metadata name",
            json!(shown),
            format!("spec.template.labels: Invalid value: \"{shown}\": must be no more than 63 bytes"),
        ),
    ] {
        refused(&with(valid(kind), path, value), &wanted);
    }
}

#[test]
fn each_rule_of_affinity_is_kept() {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let node = format!("spec affinity nodeAffinity {required} nodeSelectorTerms");
    let at = format!("spec.affinity.nodeAffinity.{required}.nodeSelectorTerms");
    let label = |expression: Value| json!([{"matchExpressions": [expression]}]);
    let field = |expression: Value| json!([{"matchFields": [expression]}]);
    for (terms, wanted) in [
        (json!([]), ": Required value: must have at least one node selector term"),
        (
            label(json!({"key": "a", "operator": "In"})),
            "[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            label(json!({"key": "a", "operator": "Exists", "values": ["x"]})),
            "[0].matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        (
            label(json!({"key": "a", "operator": "Gt", "values": ["1", "2"]})),
            "[0].matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
        ),
        (
            label(json!({"key": "a", "operator": "Like", "values": ["1"]})),
            "[0].matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector operator",
        ),
        (
            label(json!({"key": "a b", "operator": "Exists"})),
            "[0].matchExpressions[0].key: Invalid value: \"a b\": name part must consist…",
        ),
        (
            label(json!({"key": "a", "operator": "In", "values": ["x", "y z"]})),
            "[0].matchExpressions[0].values[1]: Invalid value: \"y z\": a valid label must be…",
        ),
        (
            field(json!({"key": "metadata.name", "operator": "In", "values": ["a", "b"]})),
            "[0].matchFields[0].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        ),
        (
            field(json!({"key": "metadata.name", "operator": "Exists"})),
            "[0].matchFields[0].operator: Invalid value: \"Exists\": not a valid selector operator",
        ),
        (
            field(json!({"key": "spec.x", "operator": "In", "values": ["a"]})),
            "[0].matchFields[0].key: Invalid value: \"spec.x\": not a valid field selector key",
        ),
        (
            field(json!({"key": "metadata.name", "operator": "In", "values": ["A b"]})),
            "[0].matchFields[0].values[0]: Invalid value: \"A b\": a lowercase RFC 1123…",
        ),
    ] {
        refused(&with(valid("Pod"), &node, terms), &format!("{at}{wanted}"));
    }
    let weighed = with(
        valid("Pod"),
        &format!("spec affinity nodeAffinity {preferred} 0"),
        json!({"weight": 101, "preference": {}}),
    );
    refused(
        &weighed,
        &format!(
            "spec.affinity.nodeAffinity.{preferred}[0].weight: Invalid value: 101: must be in the range 1-100"
        ),
    );
    for kind in ["podAffinity", "podAntiAffinity"] {
        let term =
            with(valid("Pod"), &format!("spec affinity {kind} {required} 0"), json!({"topologyKey": ""}));
        refused(
            &term,
            &format!("spec.affinity.{kind}.{required}[0].topologyKey: Required value: can not be empty"),
        );
        let preference = json!({"weight": 1, "podAffinityTerm": {"topologyKey": "a", "labelSelector": {"matchLabels": {"a": "b c"}}}});
        let term = with(valid("Pod"), &format!("spec affinity {kind} {preferred} 0"), preference);
        refused(
            &term,
            &format!(
                "spec.affinity.{kind}.{preferred}[0].podAffinityTerm.labelSelector.matchLabels[a]: Invalid value: \"b c\": a valid…"
            ),
        );
    }
}

#[test]
fn indexed_jobs_have_completions_and_names_that_leave_room() {
    let indexed = |completions: Value| {
        let job = with(valid("Job"), "spec completionMode", json!("Indexed"));
        with(with(job, "spec parallelism", json!(2)), "spec completions", completions)
    };
    admitted(indexed(json!(3))).unwrap();
    refused(&indexed(json!(null)), "spec.completions: Required value: when completion mode is Indexed");
    let long = with(indexed(json!(100)), "metadata name", json!("x".repeat(61)));
    refused(
        &long,
        &format!(
            "metadata.name: Invalid value: \"{0}\": will not able to create pod with invalid DNS label \"{0}-99\": must be no more than 63 bytes",
            "x".repeat(61)
        ),
    );
    refused(
        &with(indexed(json!(3)), "spec maxFailedIndexes", json!(4)),
        "[spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified, spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions]",
    );
    let policy = json!({"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]});
    let restarts = with(indexed(json!(3)), "spec template spec restartPolicy", json!("OnFailure"));
    refused(
        &with(restarts, "spec podFailurePolicy", policy),
        "spec.template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is supported when podFailurePolicy is specified",
    );
}

#[test]
fn a_group_of_the_crd_keeps_its_schema() {
    let group = |spec: Value| json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec});
    admitted(group(json!({"minMember": 2, "scheduleTimeoutSeconds": 10, "minResources": {"cpu": "4"}})))
        .unwrap();
    admitted(group(json!({}))).unwrap();
    for (spec, wanted) in [
        (
            json!({"minMember": 0}),
            "spec.minMember: Invalid value: 0: spec.minMember in body should be greater than or equal to 1",
        ),
        (
            json!({"minMember": "three"}),
            "spec.minMember: Invalid value: \"string\": spec.minMember in body must be of type integer: \"string\"",
        ),
        (
            json!({"minMember": 1.5}),
            "spec.minMember: Invalid value: \"number\": spec.minMember in body must be of type integer: \"number\"",
        ),
        (
            json!({"scheduleTimeoutSeconds": []}),
            "spec.scheduleTimeoutSeconds: Invalid value: \"array\": spec.scheduleTimeoutSeconds in body must be of type integer: \"array\"",
        ),
        (
            json!({"minResources": {"cpu": "x"}}),
            "spec.minResources[cpu]: Invalid value: \"x\": invalid quantity \"x\": no digits",
        ),
        (json!(5), "spec: Invalid value: \"number\": spec in body must be of type object: \"number\""),
    ] {
        refused(&group(spec), wanted);
    }
}

#[test]
fn what_comes_later_is_checked_when_it_is_handed_in() {
    let ours = ["fluxion".into()];
    let bad = with(valid("Pod"), "spec containers 0 resources", json!({"limits": {"a.com/b": "0.5"}}));
    let early = |value: Value| check_early(&Object::from_value(value).unwrap(), 0, &ours);
    assert!(early(bad).unwrap_err().to_string().contains("must be an integer"));
    // Its class may come before it does.
    early(with(valid("Pod"), "spec priorityClassName", json!("to-come"))).unwrap();
}
