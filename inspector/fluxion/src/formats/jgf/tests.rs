use super::*;
use crate::graph::{Status, Subsystem};

fn node(id: &str, metadata: &str) -> String {
    format!(r#"{{"id": "{id}", "metadata": {{{metadata}}}}}"#)
}

fn document(nodes: &[String], edges: &str) -> String {
    format!(
        r#"{{"version": 7, "graph": {{"directed": true, "nodes": [{}], "edges": [{edges}]}}}}"#,
        nodes.join(",")
    )
}

fn small() -> Vec<String> {
    vec![
        node("0", r#""type": "cluster", "paths": {"containment": "/c0"}"#),
        node(
            "1",
            r#""type": "node", "name": "fox07", "rank": 3, "status": 1, "paths": {"containment": "/c0/fox07"}, "properties": {"a": ""}"#,
        ),
        node(
            "2x",
            r#""type": "memory", "id": 5, "size": 8, "unit": "GB", "paths": {"containment": "/c0/fox07/memory5"}"#,
        ),
    ]
}

const EDGES: &str =
    r#"{"source": "0", "target": "1"}, {"source": "1", "target": "2x", "metadata": {"subsystem": "power"}}"#;

fn loaded(text: &str) -> Result<Graph, ReadError> {
    let mut graph = Graph::new();
    load(&mut graph, text.as_bytes())?;
    Ok(graph)
}

#[test]
fn fills_in_defaults() {
    let graph = loaded(&document(&small(), EDGES)).unwrap();
    let found: Vec<_> = graph
        .vertex_ids()
        .map(|at| {
            let vertex = graph.vertex(at);
            (
                graph.text(vertex.name),
                graph.text(vertex.basename),
                vertex.id,
                vertex.uniq_id,
                vertex.rank,
                vertex.size,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("cluster0", "cluster", 0, 0, -1, 1),
            ("fox07", "node", 7, 1, 3, 1),
            ("memory5", "memory", 5, 2, -1, 8)
        ]
    );
    let fox = graph.at_path_text("/c0/fox07")[0];
    assert_eq!(graph.vertex(fox).status, Status::Down);
    assert_eq!(graph.properties(fox), [("a", "")]);
    assert_eq!(graph.root(Subsystem::CONTAINMENT), graph.at_path_text("/c0").first().copied());
    let memory = graph.at_path_text("/c0/fox07/memory5")[0];
    assert_eq!(graph.text(graph.vertex(memory).unit), "", "the unit of a document is not kept");
    let power = graph.find_subsystem("power").unwrap();
    assert_eq!(graph.children(fox, power).count(), 1);
}

#[test]
fn edges_may_stand_before_nodes() {
    let text = format!(r#"{{"graph": {{"edges": [{EDGES}], "nodes": [{}]}}}}"#, small().join(","));
    assert_eq!(loaded(&text).unwrap().edge_count(), 2);
}

#[test]
fn says_what_is_wrong() {
    let with = |index: usize, other: String| {
        let mut nodes = small();
        nodes[index] = other;
        document(&nodes, EDGES)
    };
    for (text, message) in [
        ("[]".to_owned(), "fill_fetcher"),
        ("{".to_owned(), "json_loads returned an error"),
        ("{} x".to_owned(), "json_loads returned an error"),
        ("{}".to_owned(), "required key (graph)"),
        (r#"{"graph": {}}"#.to_owned(), "required key (nodes)"),
        (r#"{"graph": {"nodes": []}}"#.to_owned(), "required key (edges)"),
        (with(0, "{}".to_owned()), "vertex id key is not found"),
        (with(0, r#"{"id": "0"}"#.to_owned()), "key (metadata) is not found"),
        (with(0, node("0", r#""type": "c""#)), "malformed metadata"),
        (with(0, node("0", r#""type": "c", "paths": {}, "size": 1.0"#)), "malformed metadata"),
        (with(0, node("0", r#""type": "c", "paths": {}, "name": null"#)), "malformed metadata"),
        (with(0, node("0", r#""type": "c", "paths": {"a": 1}"#)), "malformed metadata"),
        (with(0, node("0", r#""type": "c", "paths": {}, "properties": null"#)), "key (properties)"),
        (with(0, node("a", r#""type": "c", "paths": {}"#)), "could not be inferred"),
        (with(2, node("1", r#""type": "c", "paths": {"containment": "/c0/x"}"#)), "duplicate JGF node id"),
        (with(2, node("1", r#""type": "c", "paths": {"containment": "/c0"}"#)), "can't insert into vmap"),
        (with(2, node("2x", r#""type": "c", "paths": {"containment": "/d0"}"#)), "Possible duplicate root"),
        (with(1, node("7", r#""type": "c", "paths": {}"#)), "target vertex not found0 -> 1"),
        (with(2, node("2x", r#""type": "node", "name": "n99999999999999999999", "paths": {}"#)), "too large"),
        (document(&small(), &format!("{EDGES}, {EDGES}")), "outedge metadata map"),
        (document(&small(), r#"{"source": 0, "target": "1"}"#), "malformed"),
    ] {
        let error = loaded(&text).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn two_children_of_one_vertex_need_two_numbers() {
    let mut nodes = small();
    nodes.push(node("9", r#""type": "gpu", "uniq_id": 1, "paths": {"containment": "/c0/gpu1"}"#));
    let edges = format!(r#"{EDGES}, {{"source": "0", "target": "9"}}"#);
    assert!(loaded(&document(&nodes, &edges)).unwrap_err().to_string().contains("cluster0 -> "));
}

#[test]
fn a_known_path_of_the_same_rank_is_the_known_vertex() {
    let mut nodes = small();
    nodes.push(node("8", r#""type": "other", "rank": 3, "paths": {"containment": "/c0/fox07"}"#));
    nodes.push(node("9", r#""type": "gpu", "paths": {"containment": "/c0/fox07/gpu9"}"#));
    let edges = format!(r#"{EDGES}, {{"source": "8", "target": "9"}}"#);
    let graph = loaded(&document(&nodes, &edges)).unwrap();
    assert_eq!(graph.vertex_count(), 4);
    assert_eq!(graph.children(graph.at_path_text("/c0/fox07")[0], Subsystem::CONTAINMENT).count(), 1);
}

#[test]
fn a_part_of_a_graph_has_ranks_to_skip() {
    let text = document(&small(), EDGES).replacen('{', r#"{"free_ranks": "1,3-4","#, 1);
    let parsed = parse(text.as_bytes(), true).unwrap();
    assert_eq!(parsed.free_ranks.unwrap().to_string(), "1,3-4");
    assert_eq!((parsed.nodes.len(), parsed.edges.len(), parsed.shorthand), (3, 2, true));
    assert!(parse(text.replace("3-4", "x").as_bytes(), true).is_err());
    assert!(parse(text.replace("3-4", "3-4000000000").as_bytes(), true).is_ok(), "all ranks cost nothing");
}

#[test]
fn deep_nesting_and_broken_text_are_errors() {
    let deep = format!(r#"{{"graph": {}"#, r#"{"x":"#.repeat(100_000));
    assert!(loaded(&deep).is_err());
    assert!(load(&mut Graph::new(), &b"{\"graph\": {\"nodes\": [\xff]}}"[..]).is_err());
}

#[test]
fn what_was_added_before_a_mistake_stays() {
    let added = |text: &str| {
        let mut graph = loaded(&document(&small(), EDGES)).unwrap();
        let before = graph.vertex_count();
        let refused = check(text.as_bytes()).and_then(|()| add(&mut graph, text.as_bytes())).unwrap_err();
        (graph.vertex_count() - before, refused.to_string())
    };
    let good = node("8", r#""type": "gpu", "paths": {"containment": "/c0/gpu8"}"#);
    let both = |second: &str| document(&[good.clone(), second.to_owned()], "");
    let (count, message) = added(&both(&node("9", r#""type": "gpu", "id": "x", "paths": {}"#)));
    assert!(count == 1 && message.contains("malformed metadata"), "{count} {message}");
    // A graph that is in use takes no further subsystems.
    let (count, message) = added(&both(&node("9", r#""type": "gpu", "paths": {"net": "/net0/gpu9"}"#)));
    assert!(count == 1 && message.contains("no subsystem net"), "{count} {message}");
    let edge = r#"{"source": "8", "target": "8", "metadata": {"subsystem": "net"}}"#;
    let (count, message) = added(&document(std::slice::from_ref(&good), edge));
    assert!(count == 1 && message.contains("could not unpack edge metadata"), "{count} {message}");
    // What is not JSON, or lacks a part, adds nothing.
    let whole = document(std::slice::from_ref(&good), "");
    let ranks = whole.replacen('{', r#"{"free_ranks": "x","#, 1);
    for text in [&whole[..whole.len() - 1], &whole.replace("edges", "sides"), &ranks, "{}", "[]"] {
        assert_eq!(added(text).0, 0, "{text}");
    }
    assert!(loaded(&ranks).is_err());
}
