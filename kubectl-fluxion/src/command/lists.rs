//! `queue`, `jobs`, `nodes` and `graph`.

use fluxion_api::client::Selection;
use fluxion_api::{Exit, FluxionJob, FluxionNode, JobState};

use super::live;
use super::options::options;
use super::selected::{wanted, write_names};
use crate::cli::{Format, Listing, NodeListing, Scope};
use crate::connect::Server;
use crate::failure::Failure;
use crate::render::{self, Columns};
use crate::{lookup, output};

/// Lists waiting jobs or all jobs.
pub(super) async fn jobs(
    server: &Server,
    scope: &Scope,
    listing: &Listing,
    columns: Columns,
) -> Result<Exit, Failure> {
    let selection = Selection {
        namespace: lookup::namespaces(server, scope),
        labels: listing.selector.clone(),
        fields: fields(listing, columns),
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
        Format::Table | Format::Wide if list.items.is_empty() => {
            output::note(&nothing(&selection, listing, columns));
        }
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

/// Field selector for the filters that the server supports.
fn fields(listing: &Listing, columns: Columns) -> String {
    let mut parts: Vec<String> = Vec::new();
    // A selector can't say "or": several states are sorted out here.
    if let [state] = listing.state.as_slice() {
        parts.push(format!("status.state={state}"));
    } else if listing.state.is_empty() && columns == Columns::Queue && !listing.watch {
        // A watch is not narrowed: what leaves the queue is shown once more, with where it went.
        let left = JobState::ALL.iter().filter(|state| state.holds_nodes() || state.is_ended());
        parts.extend(left.map(|state| format!("status.state!={state}")));
    }
    for (field, value) in [("spec.queue", &listing.queue), ("node", &listing.node)] {
        if let Some(value) = value {
            parts.push(format!("{field}={value}"));
        }
    }
    parts.join(",")
}

fn nothing(selection: &Selection, listing: &Listing, columns: Columns) -> String {
    let what = match columns {
        Columns::Queue => "no waiting jobs found",
        Columns::Jobs => "no jobs found",
    };
    let Listing { selector, state, queue, kind, node, .. } = listing;
    let filtered =
        !selector.is_empty() || !state.is_empty() || [queue, kind, node].iter().any(|it| it.is_some());
    let filter = if filtered { " matching the filter" } else { "" };
    match &selection.namespace {
        Some(namespace) => format!("{what}{filter} in namespace {namespace} (use -A for all namespaces)"),
        None => format!("{what}{filter} in any namespace"),
    }
}

/// Lists nodes, in natural order of their names.
pub(super) async fn nodes(server: &Server, listing: &NodeListing) -> Result<Exit, Failure> {
    let selection = Selection { labels: listing.selector.clone(), ..Selection::default() };
    let format = listing.output.output;
    let options = options(format, !listing.no_headers, false);
    if listing.watch {
        return live::nodes(server, selection, listing, options).await;
    }
    let mut list = server.client.list::<FluxionNode>(&selection).await?;
    list.items.sort_by(|a, b| render::natural_order(&a.metadata.name, &b.metadata.name));
    match format {
        Format::Json | Format::Yaml => output::document(&list, format)?,
        Format::Name => output::names(list.items.iter().map(|node| format!("node/{}", node.metadata.name)))?,
        Format::Table | Format::Wide if list.items.is_empty() => output::note("no nodes found"),
        Format::Table | Format::Wide => output::write(&render::nodes(&list.items, &options))?,
    }
    Ok(Exit::Done)
}

/// Prints a summary of the graph, or the plain JGF document.
pub(super) async fn graph(server: &Server, format: Format) -> Result<Exit, Failure> {
    let whole = matches!(format, Format::Json | Format::Yaml);
    let graph = server.client.graph(!whole).await?;
    match (format, &graph.status.graph) {
        (Format::Json | Format::Yaml, Some(jgf)) => output::document(jgf, format)?,
        (Format::Json | Format::Yaml, None) => {
            return Err(Failure::new(
                Exit::Other,
                "the response does not contain the graph; the server may be running an older version",
            ));
        }
        (Format::Name, _) => output::names(graph.status.summary.iter().map(|level| &level.level))?,
        (Format::Table | Format::Wide, _) => {
            output::write(&render::graph(&graph, &options(format, true, false)))?;
        }
    }
    Ok(Exit::Done)
}
