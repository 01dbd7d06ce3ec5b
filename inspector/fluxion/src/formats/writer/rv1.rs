//! Formats rv1, `rv1_nosched` and `rv1_shorthand`: R (Flux RFC 20), with or without the graph.

use super::jgf::JgfParts;
use super::json;
use super::rlite::RliteParts;
use crate::errno::Errno;
use crate::quirks::Quirks;

/// Appends the object of an answer and forgets it.
pub(super) fn emit_line(
    rlite: &mut RliteParts,
    mut graph: Option<&mut JgfParts>,
    (start, end): (i64, i64),
    queue: Option<&str>,
    quirks: Quirks,
    out: &mut String,
) -> Result<(), Errno> {
    let half_empty = rlite.is_empty() || graph.as_ref().is_some_and(|graph| graph.is_empty());
    let checked = if half_empty {
        Ok(())
    } else {
        rlite.check().and_then(|()| graph.as_mut().map_or(Ok(()), |graph| graph.check()))
    };
    if half_empty || checked.is_err() {
        if !quirks.writer_keeps_leftovers {
            rlite.clear();
            if let Some(graph) = graph {
                graph.clear();
            }
        }
        return checked;
    }
    out.push_str("{\"version\": 1, \"execution\": {\"R_lite\": ");
    rlite.write(out);
    json::member(out, "nodelist");
    out.push('[');
    json::string(out, &rlite.nodelist());
    out.push(']');
    let properties: Vec<_> = rlite.properties().collect();
    if !properties.is_empty() {
        json::member(out, "properties");
        out.push('{');
        for (name, ranks) in properties {
            json::member(out, name);
            json::string(out, &ranks);
        }
        out.push('}');
    }
    json::number(out, format_args!(", \"starttime\": {start}, \"expiration\": {end}}}"));
    rlite.clear();
    if let Some(graph) = graph {
        json::member(out, "scheduling");
        graph.emit(out);
        if let Some(queue) = queue {
            out.push_str(", \"attributes\": {\"system\": {\"scheduler\": {\"queue\": ");
            json::string(out, queue);
            out.push_str("}}}");
        }
    }
    out.push_str("}\n");
    Ok(())
}
