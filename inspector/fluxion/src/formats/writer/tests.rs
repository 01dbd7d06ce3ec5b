use super::*;
use crate::formats::{jgf, rv1};
use crate::graph::{Subsystem, VertexId};

/// Two nodes of two cores and a gpu.
fn graph() -> Graph {
    let mut graph = Graph::new();
    let text = r#"{"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-1", "gpu": "0"}}],
        "nodelist": ["fox[1-2]"], "properties": {"fast": "1"}, "starttime": 0, "expiration": 0}}"#;
    rv1::load(&mut graph, &rv1::parse(text.as_bytes(), 100).unwrap()).unwrap();
    graph
}

/// Tells a writer all below a vertex; what is below an exclusive one is exclusive, too.
fn tell(
    writer: &mut Writer,
    graph: &Graph,
    vertex: VertexId,
    depth: u32,
    wanted: &[&str],
    above: bool,
) -> bool {
    let exclusive = above || wanted.contains(&graph.text(graph.vertex(vertex).name));
    let mut any = exclusive;
    for (edge, child) in graph.children(vertex, Subsystem::CONTAINMENT) {
        if tell(writer, graph, child, depth + 1, wanted, exclusive) {
            writer.edge(graph, edge, exclusive);
            any = true;
        }
    }
    if any {
        writer.vertex(
            graph,
            &VertexEvent {
                depth,
                vertex,
                needs: 1,
                exclusive,
                parent_exclusive: above,
                label: None,
                aggregates: None,
            },
        );
    }
    any
}

fn answer(writer: &mut Writer, graph: &Graph, wanted: &[&str]) -> Result<String, Errno> {
    tell(writer, graph, VertexId(0), 1, wanted, false);
    let mut out = String::new();
    writer.emit(graph, &mut out).map(|()| out)
}

#[test]
fn lines_are_children_first_or_reversed() {
    let graph = graph();
    let mut simple = Writer::new(Format::Simple, Quirks::default());
    let text = answer(&mut simple, &graph, &["core1"]).unwrap();
    assert_eq!(
        text,
        "      ---------core1[1:x]\n      ------fox1[1:s]\n      ---------core1[1:x]\n      ------fox2[1:s]\n      ---cluster0[1:s]\n"
    );
    let mut pretty = Writer::new(Format::PrettySimple, Quirks::default());
    let text = answer(&mut pretty, &graph, &["fox2"]).unwrap();
    assert_eq!(
        text,
        "      ---cluster0[1:shared]\n      ------fox2[1:exclusive]\n      ---------gpu0[1:exclusive]\n      ---------core1[1:exclusive]\n      ---------core0[1:exclusive]\n"
    );
    assert_eq!(answer(&mut pretty, &graph, &["none"]).unwrap(), "");
}

#[test]
fn jgf_leaves_out_what_can_be_inferred() {
    let graph = graph();
    let mut writer = Writer::new(Format::Jgf, Quirks::flux_sched());
    let text = answer(&mut writer, &graph, &["gpu0"]).unwrap();
    assert!(text.starts_with(
        r#"{"graph": {"nodes": [{"id": "4", "metadata": {"type": "gpu", "id": 0, "rank": 0, "exclusive": true, "paths": {"containment": "/cluster0/fox1/gpu0"}}}, {"id": "1", "metadata": {"type": "node", "basename": "fox", "id": 1, "rank": 0, "paths":"#
    ));
    assert!(text.ends_with("\"target\": \"8\"}, {\"source\": \"0\", \"target\": \"5\"}]}}\n"), "{text}");
    let mut again = Graph::new();
    jgf::load(&mut again, text.as_bytes()).unwrap();
    assert_eq!(again.vertex_count(), 5);
}

#[test]
fn shorthand_marks_what_it_left_out_and_the_mark_may_stick() {
    let graph = graph();
    for (quirks, sticks) in [(Quirks::flux_sched(), true), (Quirks::default(), false)] {
        let mut writer = Writer::new(Format::JgfShorthand, quirks);
        let text = answer(&mut writer, &graph, &["fox1"]).unwrap();
        assert!(
            text.ends_with("\"writer\": \"fluxion:jgf_shorthand\"}\n") && !text.contains("core"),
            "{text}"
        );
        assert_eq!(answer(&mut writer, &graph, &["core1"]).unwrap().contains("writer"), sticks);
    }
}

#[test]
fn rlite_groups_ranks_by_what_is_used() {
    let graph = graph();
    let mut writer = Writer::new(Format::Rlite, Quirks::flux_sched());
    assert_eq!(
        answer(&mut writer, &graph, &["core0", "core1"]).unwrap(),
        "[{\"rank\": \"0-1\", \"children\": {\"core\": \"0-1\"}}]\n"
    );
    assert_eq!(answer(&mut writer, &graph, &["none"]), Err(Errno::Einval));
    assert_eq!(answer(&mut Writer::new(Format::Rlite, Quirks::default()), &graph, &["none"]).unwrap(), "");
}

#[test]
fn r_has_hosts_properties_and_times() {
    let graph = graph();
    let mut writer = Writer::new(Format::Rv1Nosched, Quirks::flux_sched());
    writer.times(5, 65);
    assert_eq!(
        answer(&mut writer, &graph, &["gpu0"]).unwrap(),
        "{\"version\": 1, \"execution\": {\"R_lite\": [{\"rank\": \"0-1\", \"children\": {\"gpu\": \"0\"}}], \"nodelist\": [\"fox[1-2]\"], \"properties\": {\"fast\": \"1\"}, \"starttime\": 5, \"expiration\": 65}}\n"
    );
    let mut writer = Writer::new(Format::Rv1Shorthand, Quirks::default());
    writer.queue("debug");
    let text = answer(&mut writer, &graph, &["fox1"]).unwrap();
    assert!(text.contains("\"starttime\": 0, \"expiration\": 0}, \"scheduling\": {\"graph\""), "{text}");
    assert!(
        text.ends_with("\"attributes\": {\"system\": {\"scheduler\": {\"queue\": \"debug\"}}}}\n"),
        "{text}"
    );
    assert!(!answer(&mut writer, &graph, &["fox1"]).unwrap().contains("debug"));
}

/// A cluster with a node that has no rank.
fn rankless() -> Graph {
    let mut graph = Graph::new();
    let text = r#"{"graph": {"nodes": [
        {"id": "0", "metadata": {"type": "cluster", "paths": {"containment": "/cluster0"}}},
        {"id": "1", "metadata": {"type": "node", "paths": {"containment": "/cluster0/node1"}}},
        {"id": "2", "metadata": {"type": "core", "paths": {"containment": "/cluster0/node1/core2"}}}],
        "edges": [{"source": "0", "target": "1"}, {"source": "1", "target": "2"}]}}"#;
    jgf::load(&mut graph, text.as_bytes()).unwrap();
    graph
}

#[test]
fn a_vertex_without_rank_spoils_one_answer_or_all() {
    let (good, bad) = (graph(), rankless());
    for (quirks, spoiled) in [(Quirks::flux_sched(), true), (Quirks::default(), false)] {
        let mut writer = Writer::new(Format::Rlite, quirks);
        assert_eq!(answer(&mut writer, &bad, &["core2"]), Err(Errno::Einval));
        assert_eq!(answer(&mut writer, &good, &["core0"]).is_err(), spoiled);
    }
}

#[test]
fn a_lone_root_fails_and_leads_the_next_answer_or_is_a_graph() {
    let graph = rankless();
    let mut keeps = Writer::new(Format::Jgf, Quirks::flux_sched());
    let root = VertexEvent {
        depth: 1,
        vertex: VertexId(0),
        needs: 1,
        exclusive: true,
        parent_exclusive: false,
        label: Some("l"),
        aggregates: None,
    };
    keeps.vertex(&graph, &root);
    assert_eq!(keeps.emit(&graph, &mut String::new()), Err(Errno::Enoent));
    assert_eq!(keeps.emit(&graph, &mut String::new()), Err(Errno::Enoent));
    assert_eq!(answer(&mut keeps, &graph, &["core2"]).unwrap().matches("\"id\": \"0\"").count(), 2);
    let mut sane = Writer::new(Format::Jgf, Quirks::default());
    sane.vertex(&graph, &root);
    let mut out = String::new();
    sane.emit(&graph, &mut out).unwrap();
    assert!(out.contains("\"ephemeral\": {\"label\": \"l\"}") && out.ends_with("\"edges\": []}}\n"), "{out}");
}

#[test]
fn a_node_without_cores_has_an_r_only_without_accidents() {
    let graph = graph();
    let mut writer = Writer::new(Format::Rv1Nosched, Quirks::default());
    let fox = VertexEvent {
        depth: 2,
        vertex: VertexId(1),
        needs: 1,
        exclusive: false,
        parent_exclusive: false,
        label: None,
        aggregates: None,
    };
    writer.vertex(&graph, &fox);
    let mut out = String::new();
    writer.emit(&graph, &mut out).unwrap();
    assert!(out.contains("\"R_lite\": [{\"rank\": \"0\", \"children\": {}}]"), "{out}");
    let mut writer = Writer::new(Format::Rv1Nosched, Quirks::flux_sched());
    writer.vertex(&graph, &fox);
    let mut out = String::new();
    writer.emit(&graph, &mut out).unwrap();
    assert_eq!(out, "");
}

#[test]
fn text_is_escaped_as_json_wants() {
    let mut out = String::new();
    json::string(&mut out, "a\"b\\c\nd\u{1}/é");
    assert_eq!(out, "\"a\\\"b\\\\c\\nd\\u0001/é\"");
}

#[test]
fn formats_have_names() {
    assert_eq!("pretty_simple".parse(), Ok(Format::PrettySimple));
    assert!("Simple".parse::<Format>().is_err());
}
