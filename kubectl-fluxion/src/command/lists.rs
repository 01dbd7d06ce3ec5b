//! `queue`, `jobs`, `nodes` and `graph`.

use fluxion_api::client::Selection;
use fluxion_api::{Exit, FluxionJob, FluxionNode};

use super::{live, options};
use crate::cli::{Format, Listing, NodeListing, Scope};
use crate::connect::Server;
use crate::failure::Failure;
use crate::render::{self, Columns};
use crate::{lookup, output};

/// Jobs, those that wait or all.
pub(super) async fn jobs(
    server: &Server,
    scope: &Scope,
    listing: &Listing,
    columns: Columns,
) -> Result<Exit, Failure> {
    let selection = Selection {
        namespace: lookup::namespaces(server, scope),
        labels: listing.selector.clone(),
        fields: fields(listing),
    };
    let all_namespaces = selection.namespace.is_none();
    let format = listing.output.output;
    let options = options(format, !listing.no_headers, all_namespaces);
    if listing.watch {
        return live::jobs(server, selection, listing, columns, options).await;
    }
    let mut list = server.client.list::<FluxionJob>(&selection).await?;
    list.items.retain(|job| wanted(job, listing, columns));
    if columns == Columns::Queue {
        // A stable sort: within a queue, what has no place yet stays as the server lists it.
        list.items.sort_by(|a, b| queue_place(a).cmp(&queue_place(b)));
    }
    match format {
        Format::Json | Format::Yaml => output::document(&list, format)?,
        Format::Name => write_names(&list.items, all_namespaces)?,
        Format::Table | Format::Wide if list.items.is_empty() => output::note(&nothing(&selection, columns)),
        Format::Table | Format::Wide => output::write(&match columns {
            Columns::Queue => render::queue(&list.items, &options),
            Columns::Jobs => render::jobs(&list.items, &options),
        })?,
    }
    Ok(Exit::Done)
}

fn queue_place(job: &FluxionJob) -> (&str, u32) {
    (&job.spec.queue, job.status.position.unwrap_or(u32::MAX))
}

/// The field selector for what the server can sort out itself.
fn fields(listing: &Listing) -> String {
    let mut parts: Vec<String> = Vec::new();
    // A selector can't say "or": several states are sorted out here.
    if let [state] = listing.state.as_slice() {
        parts.push(format!("status.state={}", capitalised(state)));
    }
    for (field, value) in
        [("spec.queue", &listing.queue), ("spec.group.kind", &listing.kind), ("node", &listing.node)]
    {
        if let Some(value) = value {
            parts.push(format!("{field}={value}"));
        }
    }
    parts.join(",")
}

fn capitalised(state: &str) -> String {
    let mut letters = state.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters.flat_map(char::to_lowercase)).collect()
    })
}

/// Whether the job belongs into the table.
pub(super) fn wanted(job: &FluxionJob, listing: &Listing, columns: Columns) -> bool {
    let state = &job.status.state;
    if listing.state.is_empty() {
        return columns == Columns::Jobs || job.is_queued();
    }
    listing.state.iter().any(|wanted| wanted.eq_ignore_ascii_case(state))
}

fn nothing(selection: &Selection, columns: Columns) -> String {
    let what = match columns {
        Columns::Queue => "no job waits",
        Columns::Jobs => "no jobs",
    };
    let filter = if selection.labels.is_empty() && selection.fields.is_empty() {
        ""
    } else {
        " that the filter selects"
    };
    match &selection.namespace {
        Some(namespace) => format!("{what}{filter} in namespace {namespace} (-A shows all namespaces)"),
        None => format!("{what}{filter} in any namespace"),
    }
}

/// `KIND/NAME` a line, with the namespace in front where several were asked for.
pub(super) fn write_names(jobs: &[FluxionJob], all_namespaces: bool) -> Result<(), Failure> {
    let mut text = String::new();
    for job in jobs {
        let mut reference = job.reference();
        if !all_namespaces {
            reference.namespace = None;
        }
        putln!(text, "{reference}");
    }
    output::plain(text.as_bytes())
}

/// Nodes, in their natural order as the server lists them.
pub(super) async fn nodes(server: &Server, listing: &NodeListing) -> Result<Exit, Failure> {
    let selection = Selection { labels: listing.selector.clone(), ..Selection::default() };
    let format = listing.output.output;
    let options = options(format, !listing.no_headers, false);
    if listing.watch {
        return live::nodes(server, selection, listing, options).await;
    }
    let list = server.client.list::<FluxionNode>(&selection).await?;
    match format {
        Format::Json | Format::Yaml => output::document(&list, format)?,
        Format::Name => {
            let names: String =
                list.items.iter().map(|node| format!("node/{}\n", node.metadata.name)).collect();
            output::plain(names.as_bytes())?;
        }
        Format::Table | Format::Wide if list.items.is_empty() => output::note("no nodes"),
        Format::Table | Format::Wide => output::write(&render::nodes(&list.items, &options))?,
    }
    Ok(Exit::Done)
}

/// The graph: a summary for a person, bare JGF for programs.
pub(super) async fn graph(server: &Server, format: Format) -> Result<Exit, Failure> {
    let whole = matches!(format, Format::Json | Format::Yaml);
    let graph = server.client.graph(!whole).await?;
    match (format, &graph.status.graph) {
        (Format::Json | Format::Yaml, Some(jgf)) => output::document(jgf, format)?,
        (Format::Json | Format::Yaml, None) => {
            return Err(Failure::new(
                Exit::Other,
                "the server answered without the graph itself; is it an older version?",
            ));
        }
        (Format::Name, _) => {
            let names: String =
                graph.status.summary.iter().map(|level| format!("{}\n", level.level)).collect();
            output::plain(names.as_bytes())?;
        }
        (Format::Table | Format::Wide, _) => {
            output::write(&render::graph(&graph, &options(format, true, false)))?
        }
    }
    Ok(Exit::Done)
}
