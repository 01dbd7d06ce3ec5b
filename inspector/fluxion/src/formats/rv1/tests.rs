use super::*;

const R: &str = r#"{"version": 1, "execution": {"R_lite": [
    {"rank": "2", "children": {"gpu": "0", "core": "2-3"}}, {"rank": "0-1", "children": {"core": "0"}}],
    "nodelist": ["fox[3,1]", "hound"], "properties": {"fast@core": "0,2"}, "starttime": 0, "expiration": 0},
    "attributes": {"anything": []}}"#;

fn loaded(text: &str) -> Result<Graph, ReadError> {
    let mut graph = Graph::new();
    load(&mut graph, &parse(text.as_bytes(), 1000)?)?;
    Ok(graph)
}

#[test]
fn hosts_go_by_sorted_rank_and_vertices_by_entry() {
    let graph = loaded(R).unwrap();
    let names: Vec<String> = graph
        .vertex_ids()
        .map(|id| graph.path_text(graph.vertex(id).path(Subsystem::CONTAINMENT).unwrap()))
        .collect();
    assert_eq!(
        names,
        [
            "/cluster0",
            "/cluster0/hound",
            "/cluster0/hound/gpu0",
            "/cluster0/hound/core2",
            "/cluster0/hound/core3",
            "/cluster0/fox3",
            "/cluster0/fox3/core0",
            "/cluster0/fox1",
            "/cluster0/fox1/core0"
        ]
    );
    let hound = graph.at_path_text("/cluster0/hound")[0];
    assert_eq!((graph.vertex(hound).id, graph.vertex(hound).rank), (-1, 2));
    assert_eq!(graph.properties(hound), [("fast@core", "")]);
    let fox = graph.vertex(graph.at_path_text("/cluster0/fox3")[0]);
    assert_eq!((fox.id, fox.rank, graph.text(fox.basename)), (3, 0, "fox"));
}

#[test]
fn one_host_may_serve_two_ranks_but_not_hold_one_thing_twice() {
    let same_host = R.replace("fox[3,1]\", \"hound", "fox1,fox1,fox1");
    assert!(loaded(&same_host).is_ok());
    let twice = R
        .replace("\"0-1\", \"children\": {\"core\": \"0\"}", "\"2\", \"children\": {\"core\": \"2\"}")
        .replace("0,2", "2");
    assert!(loaded(&twice).unwrap_err().to_string().contains("found duplicate vertex"));
}

#[test]
fn refuses_what_does_not_fit_together() {
    for (from, to) in [
        ("\"version\": 1", "\"version\": 2"),
        ("\"rank\": \"2\"", "\"rank\": 2"),
        ("\"rank\": \"2\"", "\"rank\": \"0^2\""),
        (", \"hound\"", ""),
        ("fox[3,1]", "fox[3"),
        ("hound", "hound99999999999999999999"),
        ("\"gpu\": \"0\"", "\"gpu\": \"0-4000000000\""),
        ("R_lite", "R_heavy"),
    ] {
        assert!(R.contains(from));
        assert!(loaded(&R.replacen(from, to, 1)).is_err(), "{from} -> {to}");
    }
}

#[test]
fn properties_of_ranks_count_as_vertices_do() {
    let properties: Vec<String> = (0..40).map(|number| format!(r#""p{number}": "0-2""#)).collect();
    let text = R.replace(r#""fast@core": "0,2""#, &properties.join(", "));
    assert!(parse(text.as_bytes(), 200).is_ok());
    assert!(parse(text.as_bytes(), 100).unwrap_err().to_string().contains("more than 100 rank properties"));
}
