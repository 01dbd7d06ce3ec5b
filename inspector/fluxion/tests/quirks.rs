//! Each accident of flux-sched on its own: what it does when it is on and all others are off, and the sane
//! answer without it, after which all books are right.
//!
//! Three have their tests elsewhere: the order of equals with the sort, the time index with the planner, and
//! slots behind a level that nobody asked for with the matcher. The one that needs a session to be seen is
//! in `resource-query`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod small;

use fluxion::errno::Errno;
use fluxion::formats::writer::{Format, Writer};
use fluxion::graph::{Graph, Status, VertexId};
use fluxion::matcher::sink::{Emit, Sink, VertexEvent};
use fluxion::matcher::{Engine, Operation, Quirks};
use small::*;

/// Two nodes of two cores.
const PAIR: &str = "/cluster0
    /cluster0/node0 rank=0
    /cluster0/node0/core0 rank=0
    /cluster0/node0/core1 rank=0
    /cluster0/node1 rank=1
    /cluster0/node1/core0 rank=1
    /cluster0/node1/core1 rank=1";
const NODE: &str = "[{type: slot, count: 1, label: s, with: [{type: node, count: 1}]}]";
const TWO_NODES: &str = "[{type: slot, count: 2, label: s, with: [{type: node, count: 1}]}]";
const CORE: &str = "[{type: slot, count: 1, label: s, with: [{type: core, count: 1}]}]";
const CORE_OF_TWO_NODES: &str =
    "[{type: node, count: 2, with: [{type: slot, count: 1, label: s, with: [{type: core, count: 1}]}]}]";

const NONE: fn() -> Quirks = Quirks::default;

/// Tells a writer about vertices, all exclusive, with edges that lead to all but the last.
fn tell(writer: &mut Writer, graph: &Graph, vertices: &[u32]) {
    for (at, &id) in vertices.iter().enumerate() {
        let event = VertexEvent {
            depth: 1,
            vertex: VertexId(id),
            needs: 1,
            exclusive: true,
            parent_exclusive: at == 0 && vertices.len() > 2,
            label: None,
            aggregates: None,
        };
        writer.vertex(graph, &event);
        if let Some((_, edge)) = graph
            .vertex_ids()
            .flat_map(|above| graph.children(above, fluxion::graph::Subsystem::CONTAINMENT))
            .map(|(edge, below)| (below, edge))
            .find(|(below, _)| *below == VertexId(id))
        {
            writer.edge(graph, edge, at == 0 && vertices.len() > 2);
        }
    }
}

fn emit(writer: &mut Writer, graph: &Graph) -> Result<String, Errno> {
    let mut text = String::new();
    writer.emit(graph, &mut text).map(|()| text)
}

#[test]
fn writer_keeps_leftovers() {
    let graph = graph(
        "/cluster0\n/cluster0/node0\n/cluster0/node0/core0\n/cluster0/node1 rank=1\n/cluster0/node1/core1 rank=1",
    );
    let answers = |quirks| {
        let mut writer = Writer::new(Format::Rlite, quirks);
        tell(&mut writer, &graph, &[2, 1]);
        let first = emit(&mut writer, &graph);
        tell(&mut writer, &graph, &[4, 3]);
        (first, emit(&mut writer, &graph))
    };
    let good = "[{\"rank\": \"1\", \"children\": {\"core\": \"1\"}}]\n".to_owned();
    let on = Quirks { writer_keeps_leftovers: true, ..NONE() };
    assert_eq!(answers(on), (Err(Errno::Einval), Err(Errno::Einval)), "a node without rank spoils both");
    assert_eq!(answers(NONE()), (Err(Errno::Einval), Ok(good)), "it spoils its own answer alone");
}

#[test]
fn rlite_refuses_nothing() {
    let graph = graph(PAIR);
    let on = Quirks { rlite_refuses_nothing: true, ..NONE() };
    assert_eq!(emit(&mut Writer::new(Format::Rlite, on), &graph), Err(Errno::Einval));
    assert_eq!(emit(&mut Writer::new(Format::Rlite, NONE()), &graph), Ok(String::new()));
}

#[test]
fn sticky_shorthand_mark() {
    let graph = graph(PAIR);
    let marked = |quirks| {
        let mut writer = Writer::new(Format::JgfShorthand, quirks);
        // A core within an exclusive node is left out, a core within a shared one is not.
        tell(&mut writer, &graph, &[2, 1, 0]);
        let first = emit(&mut writer, &graph).unwrap().contains("\"writer\"");
        tell(&mut writer, &graph, &[2, 1]);
        (first, emit(&mut writer, &graph).unwrap().contains("\"writer\""))
    };
    assert_eq!(marked(Quirks { sticky_shorthand_mark: true, ..NONE() }), (true, true));
    assert_eq!(marked(NONE()), (true, false));
}

#[test]
fn sticky_queue() {
    let graph = graph(PAIR);
    let named = |quirks| {
        let mut writer = Writer::new(Format::Rv1, quirks);
        writer.queue("debug");
        [(); 2].map(|()| {
            tell(&mut writer, &graph, &[2, 1, 0]);
            emit(&mut writer, &graph).unwrap().contains("\"queue\": \"debug\"")
        })
    };
    assert_eq!(named(Quirks { sticky_queue: true, ..NONE() }), [true, true]);
    assert_eq!(named(NONE()), [true, false]);
}

#[test]
fn stale_errno() {
    let shared = "[{type: node, count: 1, with: [{type: core, count: 1}]}]";
    let errno = |quirks, down: bool| {
        let mut engine = engine(PAIR, quirks);
        if down {
            engine.set_status("/cluster0/node0", Status::Down);
        }
        let errno = allocate(&mut engine, shared, 1).unwrap_err().errno;
        sound(&engine);
        assert!(engine.is_as_new());
        errno
    };
    let on = Quirks { stale_errno: true, ..NONE() };
    assert_eq!(errno(on, false), Errno::Unset, "no step failed before");
    assert_eq!(errno(on, true), Errno::Ebusy, "the node that is down left its number behind");
    assert_eq!((errno(NONE(), false), errno(NONE(), true)), (Errno::Einval, Errno::Einval));
}

#[test]
fn drifting_node_count() {
    let on = Quirks { drifting_node_count: true, ..NONE() };
    let three = format!("{PAIR}\n/cluster0/node2 rank=2 down");
    for (quirks, two) in [(on, Err(Errno::Ebusy)), (NONE(), Ok(()))] {
        // Two up and one down from the beginning count as one.
        let mut loaded = engine(&three, quirks);
        assert_eq!(allocate(&mut loaded, TWO_NODES, 1).map_err(|failure| failure.errno), two);
        sound(&loaded);
        // A node that came later does not count.
        let mut grown = engine("/cluster0\n/cluster0/node0 rank=0\n/cluster0/node0/core0 rank=0", quirks);
        grown
            .attach(|graph| {
                fluxion::formats::jgf::load(graph, document(PAIR).as_bytes())
                    .map_err(|error| fluxion::matcher::Failure::new(Errno::Einval, error.to_string()))
            })
            .unwrap();
        assert_eq!(allocate(&mut grown, TWO_NODES, 1).map_err(|failure| failure.errno), two);
        sound(&grown);
    }
    // A rack that goes down takes a node with it that was down already, and with that one of the others.
    for (quirks, one) in [(on, Err(Errno::Ebusy)), (NONE(), Ok(()))] {
        let mut engine = engine(
            "/cluster0
            /cluster0/rack0
            /cluster0/rack0/node0 rank=0
            /cluster0/rack1
            /cluster0/rack1/node1 rank=1",
            quirks,
        );
        engine.set_status("/cluster0/rack0/node0", Status::Down);
        engine.set_status("/cluster0/rack0", Status::Down);
        assert_eq!(allocate(&mut engine, NODE, 1).map_err(|failure| failure.errno), one);
        sound(&engine);
    }
}

#[test]
fn halfway_tracking() {
    // The first rack has something below it; that the type counts is found at the second, which has not.
    let racks = "/cluster0\n/cluster0/rack0\n/cluster0/rack0/node0 rank=0\n/cluster0/rack1";
    let both = "[{type: cluster, count: 1, with: [{type: slot, count: 2, label: s, with: [{type: rack, count: 1}]}]}]";
    let ever = |quirks| {
        let mut engine = engine(racks, quirks);
        ask(&mut engine, Operation::Satisfiability, both, 1).0.map(|_| ()).map_err(|failure| failure.errno)
    };
    assert_eq!(ever(Quirks { halfway_tracking: true, ..NONE() }), Err(Errno::Enodev), "one rack is counted");
    assert_eq!(ever(NONE()), Ok(()));
    let mut engine = engine(racks, NONE());
    assert_eq!(allocate(&mut engine, both, 1), Ok(()));
    sound(&engine);
    engine.cancel(1).unwrap();
    assert!(engine.is_as_new());
}

#[test]
fn pooled_rank_removal() {
    let run = |quirks| {
        let mut engine = engine(PAIR, quirks);
        allocate(&mut engine, CORE_OF_TWO_NODES, 1).unwrap();
        allocate(&mut engine, CORE, 2).unwrap();
        let ended = engine.remove_ranks(&[0]);
        (engine, ended)
    };
    // Both are credited with two cores: job 1 has no more on record, though it still holds one; job 2 never
    // held so many.
    let (engine, ended) = run(Quirks { pooled_rank_removal: true, ..NONE() });
    assert!(ended.is_err());
    assert!(!engine.check().is_empty());
    let mut engine = self::engine(PAIR, Quirks { pooled_rank_removal: true, ..NONE() });
    allocate(&mut engine, CORE, 1).unwrap();
    assert!(engine.remove_ranks(&[0, 7]).is_err());
    assert!(!engine.allocations().is_tagged(VertexId(1), 1), "rank 0 is forgotten before rank 7 is missed");
    let (mut engine, ended) = run(NONE());
    assert_eq!(ended, Ok(vec![2]), "job 1 goes on on the other node");
    sound(&engine);
    engine.cancel(1).unwrap();
    assert!(engine.is_as_new());
}

#[test]
fn lagging_sums() {
    let has_sums = |quirks| {
        let mut engine = engine(PAIR, quirks);
        engine.remove_ranks(&[0, 1]).unwrap();
        engine.allocations().aggregates(VertexId(0)).is_some()
    };
    assert!(has_sums(Quirks { lagging_time_index: true, ..NONE() }));
    assert!(!has_sums(NONE()), "there is nothing below the root");
}

#[test]
fn early_unmark() {
    let racks = "/cluster0
        /cluster0/rack0
        /cluster0/rack0/node0 rank=0
        /cluster0/rack0/node0/core0 rank=0
        /cluster0/rack0/node1 rank=1
        /cluster0/rack0/node1/core0 rank=1";
    let rack = "[{type: rack, count: 1, exclusive: true, with: [{type: slot, count: 1, label: s, with: [{type: node, count: 1}]}]}]";
    let run = |quirks| {
        let mut engine = engine(racks, quirks);
        allocate(&mut engine, CORE_OF_TWO_NODES, 1).unwrap();
        assert_eq!(engine.partial_cancel(1, &rank(0)), Ok(false));
        let whole = allocate(&mut engine, rack, 2).map_err(|failure| failure.errno);
        (engine, whole)
    };
    let (engine, whole) = run(Quirks { early_unmark: true, ..NONE() });
    assert_eq!(whole, Ok(()), "the rack is given away with job 1 in it");
    assert!(!engine.check().is_empty());
    let (mut engine, whole) = run(NONE());
    assert_eq!(whole, Err(Errno::Ebusy));
    sound(&engine);
    engine.cancel(1).unwrap();
    assert!(engine.is_as_new());
}

#[test]
fn stale_labels() {
    let labelled = "[{type: node, count: 1, label: lead, with: [{type: slot, count: 1, label: s, with: [{type: core, count: 1}]}]}]";
    let plain = labelled.replace("label: lead, ", "");
    let run = |quirks| {
        let mut engine = engine(PAIR, quirks);
        let first = ask(&mut engine, Operation::Allocate, labelled, 1).1;
        assert!(first.contains(&"node0 (lead)".to_owned()), "{first:?}");
        engine.cancel(1).unwrap();
        let second = ask(&mut engine, Operation::Allocate, &plain, 2).1;
        sound(&engine);
        second
    };
    assert_eq!(run(Quirks { stale_labels: true, ..NONE() }), ["core0", "node0 (lead)", "cluster0"]);
    assert_eq!(run(NONE()), ["core0", "node0", "cluster0"]);
}

#[test]
fn leaked_bookings() {
    // A job number that is booked already is booked again.
    let held = listed("/cluster0\n/cluster0/node0 rank=0\n/cluster0/node0/core0 rank=0 x");
    let run = |quirks| {
        let mut engine = engine(PAIR, quirks);
        allocate(&mut engine, CORE, 1).unwrap();
        let again = engine.update(&held, 1, 500, 10, &mut Names::default());
        (engine, again.is_ok())
    };
    let (engine, again) = run(Quirks { leaked_bookings: true, ..NONE() });
    assert!(again, "the first booking has no owner any more");
    assert!(!engine.check().is_empty());
    let (mut engine, again) = run(NONE());
    assert!(!again);
    sound(&engine);
    engine.cancel(1).unwrap();
    assert!(engine.is_as_new());
}

#[test]
fn leaked_presence() {
    // The number of a job that is in the first node is used again in the same node, later.
    let node = NODE.replace("node, count: 1", "node, count: 1, exclusive: true");
    let run = |quirks| {
        let mut engine = engine(PAIR, quirks);
        engine.set_status("/cluster0/node1", Status::Down);
        allocate(&mut engine, CORE, 1).unwrap();
        let held = listed("/cluster0\n/cluster0/node0 rank=0\n/cluster0/node0/core1 rank=0 x");
        engine.update(&held, 1, 500, 10, &mut Names::default()).unwrap();
        allocate(&mut engine, &node, 2).is_ok()
    };
    assert!(!run(Quirks { leaked_bookings: true, ..NONE() }), "the first one is still in the node");
}

#[test]
fn leaked_reservation() {
    // What a number has is allocated, and then reserved for it once more.
    let mut engine = engine(PAIR, Quirks { leaked_bookings: true, ..NONE() });
    engine.set_status("/cluster0/node1", Status::Down);
    allocate(&mut engine, NODE, 1).unwrap();
    let (found, _) = ask(&mut engine, Operation::AllocateOrElseReserve, NODE, 1);
    assert_eq!(found.unwrap().at, 100);
    let node = |engine: &Engine| engine.allocations().get(VertexId(1)).unwrap().clone();
    assert!(node(&engine).is_allocated() && node(&engine).is_reserved());
    engine.cancel(1).unwrap();
    assert!(!node(&engine).is_allocated() && node(&engine).is_reserved(), "the allocation goes");
}

#[test]
fn auxiliary_refuses() {
    let lines = format!("{PAIR}\npower:/powerpanel0\npower:/powerpanel0/pdu0");
    let run = |quirks| {
        let mut engine = engine_of(&lines, &["containment", "power"], quirks);
        let found = allocate(&mut engine, CORE, 1).map_err(|failure| failure.errno);
        sound(&engine);
        (found, ask(&mut engine, Operation::Satisfiability, CORE, 2).0.is_ok())
    };
    assert_eq!(run(Quirks { auxiliary_refuses: true, ..NONE() }), (Err(Errno::Ebusy), false));
    assert_eq!(run(NONE()), (Ok(()), true));
}

#[test]
fn rootless_cancel_fails() {
    // What an update without a way from the root left behind is a job that the root does not know.
    let run = |quirks| {
        let mut engine = engine(PAIR, quirks);
        let held = listed("/cluster0/node0/core0 rank=0 x");
        assert_eq!(engine.update(&held, 1, 0, 10, &mut Names::default()), Ok(()));
        let cancelled = engine.cancel(1).map_err(|failure| failure.errno);
        assert!(engine.is_as_new(), "what it held is free either way");
        cancelled
    };
    let half = Quirks { half_updates: true, ..NONE() };
    assert_eq!(run(Quirks { rootless_cancel_fails: true, ..half }), Err(Errno::Einval));
    assert_eq!(run(half), Ok(()));
}

#[test]
fn half_updates() {
    // The edge leads to a core of the other node.
    let wrong = document(
        "/cluster0\n/cluster0/node0 rank=0\n/cluster0/node0/core0 rank=0 x\n/cluster0/node1 rank=1\n/cluster0/node1/core0 rank=1 x",
    )
    .replace("{\"source\": \"1\", \"target\": \"2\"", "{\"source\": \"1\", \"target\": \"4\"");
    let parsed = fluxion::formats::jgf::parse(wrong.as_bytes(), false).unwrap();
    let wrong = fluxion::document::Document::Graph(parsed);
    let rest = "[{type: slot, count: 4, label: s, with: [{type: core, count: 1}]}]";
    let run = |quirks| {
        let mut engine = engine(PAIR, quirks);
        assert_eq!(
            engine.update(&wrong, 1, 0, 10, &mut Names::default()).unwrap_err().message,
            "update_tgt_edge: JGF edge from node0 to core0 not found in resource graph.\n"
        );
        let free = allocate(&mut engine, rest, 2).is_ok();
        (engine, free)
    };
    let (engine, free) = run(Quirks { half_updates: true, ..NONE() });
    assert!(!free, "two cores are held by nobody");
    assert!(!engine.check().is_empty());
    let (engine, free) = run(NONE());
    assert!(free);
    sound(&engine);
}

#[test]
fn half_partial_cancels() {
    // The node, which comes first, is shared.
    let part = listed("/cluster0/node0 rank=0\n/cluster0/node0/core0 rank=0 x");
    let two = CORE_OF_TWO_NODES.replace("core, count: 1", "core, count: 2");
    let run = |quirks| {
        let mut engine = engine(PAIR, quirks);
        allocate(&mut engine, &two, 1).unwrap();
        let cancelled = engine.partial_cancel(1, &part);
        assert_eq!(cancelled.unwrap_err().message, "cancel_vtx: can't find allocation of job 1 in node0.\n");
        let tagged = engine.allocations().is_tagged(VertexId(1), 1);
        (engine, tagged)
    };
    let (mut engine, tagged) = run(Quirks { half_updates: true, ..NONE() });
    assert!(!tagged, "the job is not known at the node any more");
    engine.cancel(1).unwrap();
    assert_eq!(engine.visits(), (5, 4), "so that what it holds there stays");
    let four = "[{type: slot, count: 4, label: s, with: [{type: core, count: 1}]}]";
    assert!(allocate(&mut engine, four, 2).is_err());
    let (mut engine, tagged) = run(NONE());
    assert!(tagged);
    engine.cancel(1).unwrap();
    assert!(engine.is_as_new());
}

#[test]
fn unbooked_wholes() {
    let run = |quirks| {
        let mut engine = engine_by("lonodex", PAIR, &["containment"], quirks);
        let held = listed("/cluster0\n/cluster0/node0 rank=0\n/cluster0/node0/core0 rank=0 x");
        let mut names = Names::default();
        assert_eq!(engine.update(&held, 1, 0, 10, &mut names), Ok(()));
        (engine, names.0)
    };
    let (engine, names) = run(Quirks { unbooked_wholes: true, ..NONE() });
    assert_eq!(names, ["core0", "core1", "node0", "cluster0"]);
    assert!(!engine.check().is_empty(), "nobody keeps others from the second core");
    let (mut engine, names) = run(NONE());
    assert_eq!(names, ["core0", "node0", "cluster0"]);
    sound(&engine);
    engine.cancel(1).unwrap();
    assert!(engine.is_as_new());
}
