//! Documents that name very much alike: what they cost grows as they do, or they are refused.

#![allow(clippy::unwrap_used, reason = "a test that can't write its documents has failed")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use resource_query::{Streams, run};

/// The longest that a session may take here. With costs that grow by the square each takes minutes.
const PATIENCE: Duration = Duration::from_mins(1);

/// Loads a document, types commands in which `FILE` is the other document, and answers the exit status and
/// all that is said.
fn session(format: &str, document: &str, other: &str, commands: &str) -> (u8, String) {
    let folder = tempfile::tempdir().unwrap();
    let (loaded, named) = (folder.path().join("loaded"), folder.path().join("named"));
    std::fs::write(&loaded, document).unwrap();
    std::fs::write(&named, other).unwrap();
    let arguments = ["-L", loaded.to_str().unwrap(), "-f", format].map(str::to_owned).to_vec();
    let commands = commands.replace("FILE", named.to_str().unwrap());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    let status = run(
        arguments,
        Streams {
            stdin: &mut commands.as_bytes(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            terminal: false,
        },
    );
    assert!(begun.elapsed() < PATIENCE, "took {:?}", begun.elapsed());
    (status, String::from_utf8([stdout, stderr].concat()).unwrap())
}

/// A cluster with children, each with its part of the metadata.
fn star(children: impl Iterator<Item = String>) -> String {
    let mut nodes =
        r#"{"id": "0", "metadata": {"type": "cluster", "paths": {"containment": "/c0"}}}"#.to_owned();
    let mut edges = String::new();
    for (number, metadata) in (1..).zip(children) {
        write!(nodes, ", {{\"id\": \"{number}\", \"metadata\": {{{metadata}}}}}").unwrap();
        let comma = if number > 1 { ", " } else { "" };
        write!(edges, "{comma}{{\"source\": \"0\", \"target\": \"{number}\"}}").unwrap();
    }
    format!("{{\"graph\": {{\"nodes\": [{nodes}], \"edges\": [{edges}]}}}}")
}

fn r(ranks: &str, children: &str, hosts: &str) -> String {
    format!(
        r#"{{"version": 1, "execution": {{"R_lite": [{{"rank": "{ranks}", "children": {{{children}}}}}], "nodelist": [{hosts}]}}}}"#
    )
}

#[test]
fn many_vertices_at_one_path() {
    let hosts = vec!["\"n\""; 15_000].join(", ");
    let (status, said) =
        session("rv1exec", &r("0-14999", r#""core": "0""#, &hosts), "", "get-status /cluster0/n\n");
    assert_eq!((status, said.lines().count()), (0, 15_000));
    let alike = (0..15_000).map(|rank| {
        format!(r#""type": "core", "rank": {rank}, "exclusive": true, "paths": {{"containment": "/c0/x"}}"#)
    });
    let document = star(alike);
    let (status, said) = session(
        "jgf",
        &document,
        &document,
        "attach FILE\nget-status /c0/x\nremove 0-14998 false\nget-status /c0/x\n",
    );
    assert_eq!((status, said.lines().count()), (0, 15_001), "all of a path go with one of them");
}

#[test]
fn many_free_ranks() {
    let cores = (1..5_000)
        .map(|rank| format!(r#""type": "core", "rank": {rank}, "paths": {{"containment": "/c0/x"}}"#));
    let document = star(cores);
    let free = document.replacen('{', r#"{"free_ranks": "0-4294967293","#, 1);
    let (status, said) = session("jgf", &document, &free, "update allocate jgf FILE 1 0 10\n");
    assert!(status == 0 && said.contains("RESOURCES=ALLOCATED"), "{said}");
}

#[test]
fn many_types() {
    let types: Vec<String> = (0..15_000).map(|number| format!("\"t{number}\": \"0\"")).collect();
    let (status, said) = session("rv1exec", &r("0", &types.join(", "), "\"n\""), "", "find names=t7\n");
    assert_eq!(status, 0, "{said}");
    // Each type is summed up at each of the clusters: that is too much.
    let mut nodes =
        r#"{"id": "0", "metadata": {"type": "cluster", "paths": {"containment": "/c0"}}}"#.to_owned();
    let mut edges = Vec::new();
    for number in 1..2_000 {
        let below = number + 2_000;
        write!(
            nodes,
            r#", {{"id": "{number}", "metadata": {{"type": "cluster", "paths": {{"containment": "/c0/{number}"}}}}}}, {{"id": "{below}", "metadata": {{"type": "t{number}", "paths": {{"containment": "/c0/{number}/t"}}}}}}"#
        )
        .unwrap();
        edges.push(format!(r#"{{"source": "0", "target": "{number}"}}"#));
        edges.push(format!(r#"{{"source": "{number}", "target": "{below}"}}"#));
    }
    let document = format!("{{\"graph\": {{\"nodes\": [{nodes}], \"edges\": [{}]}}}}", edges.join(", "));
    let (status, said) = session("jgf", &document, "", "");
    assert!(status == 1 && said.contains("can't initialize traverser"), "{said}");
}

#[test]
fn many_children_of_a_rank_that_goes() {
    let (status, said) =
        session("rv1exec", &r("0", r#""core": "0-30000""#, "\"n\""), "", "remove 0 false\nfind status=up\n");
    assert!(status == 0 && said.contains("---cluster0[1:x]") && !said.contains("core"), "{said}");
}

#[test]
fn many_attributes_and_keys() {
    let attributes = (0..50_000).fold(String::new(), |text, number| text + &format!(" a{number}='x'"));
    let document = format!("<graphml{attributes}/>");
    let entity = "<!DOCTYPE g [<!ENTITY e 'long'>]><graphml>&e;&e;</graphml>";
    for format in ["grug", "hwloc"] {
        let (status, said) = session(format, &document, "", "");
        assert!(status == 1 && said.contains("attributes on one element"), "{said}");
        let (status, said) = session(format, entity, "", "");
        assert!(status == 1 && said.contains("entity declarations are not supported"), "{said}");
    }
    let nested = (0..10_000)
        .fold("<graphml>".to_owned(), |text, number| text + &format!("<a xmlns:n{number}='u{number}'>"));
    let (status, said) = session("grug", &nested, "", "");
    assert!(status == 1 && said.contains("namespace prefixes"), "{said}");
    let mut document = "<graphml><!-- don't --><![CDATA['=]]>".to_owned();
    for number in 0..3_000 {
        write!(document, r#"<key id="k{number}" for="node" attr.name="type"><default>core</default></key>"#)
            .unwrap();
    }
    document.push_str("<graph>");
    for number in 0..3_000 {
        write!(document, r#"<node id="{number}"/>"#).unwrap();
    }
    document.push_str("</graph></graphml>");
    let (status, said) = session("grug", &document, "", "");
    assert!(status == 1 && said.contains("can't initialize traverser"), "{said}");
}

#[test]
fn many_vertices_to_associate() {
    let mut document = "<graphml>".to_owned();
    for (key, of) in
        [("root", "node"), ("type", "node"), ("basename", "node"), ("size", "node"), ("subsystem", "node")]
            .into_iter()
            .chain(
                ["e_subsystem", "gen_method", "multi_scale", "id_stride", "as_tgt_subsystem"]
                    .map(|key| (key, "edge")),
            )
    {
        write!(document, r#"<key id="{key}" for="{of}" attr.name="{key}"/>"#).unwrap();
    }
    document.push_str("<graph>");
    for (id, kind, subsystem) in [
        ("a", "cluster", "containment"),
        ("b", "node", "containment"),
        ("c", "core", "containment"),
        ("d", "core", "power"),
    ] {
        write!(document, r#"<node id="{id}"><data key="root">{}</data><data key="type">{kind}</data><data key="basename">{kind}</data><data key="size">1</data><data key="subsystem">{subsystem}</data></node>"#, u8::from(id == "a")).unwrap();
    }
    for (source, target, subsystem, method) in [
        ("a", "b", "containment", "MULTIPLY"),
        ("a", "c", "containment", "MULTIPLY"),
        ("b", "d", "power", "ASSOCIATE_BY_PATH_IN"),
    ] {
        write!(document, r#"<edge source="{source}" target="{target}"><data key="e_subsystem">{subsystem}</data><data key="gen_method">{method}</data><data key="multi_scale">15000</data><data key="id_stride">1</data><data key="as_tgt_subsystem">containment</data></edge>"#).unwrap();
    }
    document.push_str("</graph></graphml>");
    let (status, said) = session("grug", &document, "", "find names=node7\n");
    assert!(status == 0 && said.contains("---node7[1:x]"), "{said}");
}
