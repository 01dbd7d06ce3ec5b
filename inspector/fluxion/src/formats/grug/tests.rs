#![allow(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "short test documents are put together in the plainest way"
)]

use super::*;
use crate::graph::Subsystem;

const KEYS: &str = r#"<key id="root" for="node" attr.name="root" attr.type="int"><default>0</default></key>
<key id="type" for="node" attr.name="type" attr.type="string"/>
<key id="basename" for="node" attr.name="basename" attr.type="string"/>
<key id="size" for="node" attr.name="size" attr.type="long"><default>1</default></key>
<key id="subsystem" for="node" attr.name="subsystem" attr.type="string"><default>containment</default></key>
<key id="e_subsystem" for="edge" attr.name="e_subsystem" attr.type="string"><default>containment</default></key>
<key id="id_scope" for="edge" attr.name="id_scope" attr.type="int"><default>0</default></key>
<key id="id_start" for="edge" attr.name="id_start" attr.type="int"><default>0</default></key>
<key id="id_stride" for="edge" attr.name="id_stride" attr.type="int"><default>1</default></key>
<key id="gen_method" for="edge" attr.name="gen_method" attr.type="string"><default>MULTIPLY</default></key>
<key id="multi_scale" for="edge" attr.name="multi_scale" attr.type="int"><default>1</default></key>
<key id="as_tgt_subsystem" for="edge" attr.name="as_tgt_subsystem" attr.type="string"><default>containment</default></key>
<key id="as_tgt_uplvl" for="edge" attr.name="as_tgt_uplvl" attr.type="int"><default>1</default></key>
<key id="as_src_uplvl" for="edge" attr.name="as_src_uplvl" attr.type="int"><default>1</default></key>"#;

/// `vertices` are `id` or `id:key=value,…`; `edges` are `source target` or `source target key=value …`.
fn recipe(vertices: &[&str], edges: &[&str]) -> String {
    let data = |pairs: &mut dyn Iterator<Item = &str>| -> String {
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap());
        pairs.map(|(key, value)| format!("<data key=\"{key}\">{value}</data>")).collect()
    };
    let mut body = String::new();
    for vertex in vertices {
        let (id, rest) = vertex.split_once(':').unwrap_or((vertex, ""));
        let pairs = data(&mut rest.split(',').filter(|pair| !pair.is_empty()));
        body += &format!(
            "<node id=\"{id}\"><data key=\"type\">{id}</data><data key=\"basename\">{id}</data>{pairs}</node>"
        );
    }
    for edge in edges {
        let mut words = edge.split(' ');
        let (source, target) = (words.next().unwrap(), words.next().unwrap());
        body += &format!("<edge source=\"{source}\" target=\"{target}\">{}</edge>", data(&mut words));
    }
    format!("<graphml> stray {KEYS}<graph edgedefault=\"directed\">{body}</graph></graphml>")
}

fn paths(text: &str, subsystem: &str) -> Vec<String> {
    let mut graph = Graph::new();
    load(&mut graph, text.as_bytes()).unwrap();
    let subsystem = graph.find_subsystem(subsystem).unwrap();
    let with_path = graph.vertex_ids().filter_map(|id| graph.vertex(id).path(subsystem));
    with_path.map(|path| graph.path_text(path)).collect()
}

#[test]
fn multiplies_level_by_level() {
    let text = recipe(
        &["cluster:root=1", "node", "core"],
        &["cluster node multi_scale=2", "node core multi_scale=2"],
    );
    let mut graph = Graph::new();
    load(&mut graph, text.as_bytes()).unwrap();
    let names: Vec<_> =
        graph.vertex_ids().map(|id| (graph.text(graph.vertex(id).name), graph.vertex(id).rank)).collect();
    assert_eq!(
        names,
        [
            ("cluster0", -1),
            ("node0", 0),
            ("node1", 1),
            ("core0", -1),
            ("core1", -1),
            ("core0", -1),
            ("core1", -1)
        ]
    );
    assert_eq!(graph.edge_count(), 6);
}

#[test]
fn a_scope_numbers_across_parents_and_wraps() {
    let text = recipe(
        &["cluster:root=1", "node", "socket", "core"],
        &["cluster node multi_scale=2", "node socket multi_scale=2", "socket core multi_scale=2 id_scope=1"],
    );
    let cores: Vec<String> =
        paths(&text, "containment").into_iter().filter(|path| path.contains("core")).collect();
    assert_eq!(
        cores[..4],
        [
            "/cluster0/node0/socket0/core0",
            "/cluster0/node0/socket0/core1",
            "/cluster0/node0/socket1/core2",
            "/cluster0/node0/socket1/core3"
        ]
    );
    assert_eq!(cores[4], "/cluster0/node1/socket0/core0");
}

#[test]
fn a_negative_scope_gives_no_number() {
    let text = recipe(&["cluster:root=1", "node"], &["cluster node id_scope=-1"]);
    assert_eq!(paths(&text, "containment"), ["/cluster0", "/cluster0/node"]);
}

#[test]
fn associates_what_exists_into_another_subsystem() {
    let text = recipe(
        &["cluster:root=1", "rack", "node", "pdu:root=1,subsystem=power", "p:subsystem=power"],
        &["cluster rack multi_scale=2", "rack node multi_scale=1", "pdu p e_subsystem=power multi_scale=1"],
    )
    .replace("<data key=\"type\">p</data>", "<data key=\"type\">node</data>")
    .replace(
        "<edge source=\"pdu\" target=\"p\">",
        "<edge source=\"pdu\" target=\"p\"><data key=\"gen_method\">ASSOCIATE_IN</data>",
    );
    assert_eq!(paths(&text, "power"), ["/pdu0/node0", "/pdu0/node0", "/pdu0"]);
}

#[test]
fn refuses_nonsense_and_what_is_too_large() {
    let fine = recipe(&["cluster:root=1", "node"], &["cluster node multi_scale=2000000000"]);
    let mut graph = Graph::new();
    graph.set_limit(1000);
    assert!(load(&mut graph, fine.as_bytes()).unwrap_err().to_string().contains("1000"));
    for text in [
        String::new(),
        "<graphml".to_owned(),
        "<a/>".to_owned(),
        "<graphml/>".to_owned(),
        fine.replace("2000000000", "two"),
        fine.replace("attr.name=\"size\"", "attr.name=\"colour\""),
        fine.replace("target=\"node\"", "target=\"nod\""),
        fine.replace("<default>1</default>", "<default>99999999999999999999</default>"),
    ] {
        assert!(load(&mut Graph::new(), text.as_bytes()).is_err(), "{text}");
    }
    assert!(load(&mut Graph::new(), b"<graphml>\xff</graphml>").is_err());
    let deep = "<a>".repeat(200_000);
    assert!(load(&mut Graph::new(), deep.as_bytes()).is_err());
}

#[test]
fn the_root_has_a_path_in_its_own_subsystem() {
    let text = recipe(&["cluster:root=1", "node"], &["cluster node"]);
    let mut graph = Graph::new();
    load(&mut graph, text.as_bytes()).unwrap();
    assert!(graph.root(Subsystem::CONTAINMENT).is_some());
}
