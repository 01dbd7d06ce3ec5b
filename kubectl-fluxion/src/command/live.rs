//! `--watch`: prints the list, then a line for each change.

use std::collections::{BTreeMap, BTreeSet};

use fluxion_api::client::{Change, Error, Resource, Selection, follow};
use fluxion_api::{Exit, FluxionJob, FluxionNode};
use futures::StreamExt;
use jiff::Timestamp;
use serde::Serialize;

use super::selected::{wanted, write_names};
use crate::cli::{Format, Listing, NodeListing};
use crate::connect::Server;
use crate::failure::Failure;
use crate::output;
use crate::render::{self, Columns, Table};

/// Watches jobs. A job that leaves the selection is printed once more.
pub(super) async fn jobs(
    server: &Server,
    selection: Selection,
    listing: &Listing,
    columns: Columns,
    options: render::Options,
) -> Result<Exit, Failure> {
    let mut table = columns.table(&options);
    let mut headers = options.headers;
    let mut shown: BTreeSet<(Option<String>, String)> = BTreeSet::new();
    let format = listing.output.output;
    run::<FluxionJob>(server, selection, |jobs| {
        let mut chosen = Vec::new();
        for job in jobs {
            let key = (job.metadata.namespace.clone(), job.metadata.name.clone());
            let belongs = wanted(&job, listing, columns);
            let was_shown = if belongs { !shown.insert(key) } else { shown.remove(&key) };
            if belongs || was_shown {
                chosen.push(job);
            }
        }
        match format {
            Format::Name => write_names(&chosen, options.namespaces),
            Format::Json | Format::Yaml => documents(&chosen, format),
            Format::Table | Format::Wide => {
                let now = render::Options { now: Timestamp::now(), ..options.clone() };
                write_rows(
                    &mut table,
                    chosen.iter().map(|job| render::job_row(job, columns, &now)),
                    &mut headers,
                    &now,
                )
            }
        }
    })
    .await
}

/// Watches nodes.
pub(super) async fn nodes(
    server: &Server,
    selection: Selection,
    listing: &NodeListing,
    options: render::Options,
) -> Result<Exit, Failure> {
    let mut table: Option<(Table, Vec<String>)> = None;
    let mut headers = options.headers;
    let format = listing.output.output;
    run::<FluxionNode>(server, selection, |nodes| match format {
        Format::Name => output::names(nodes.iter().map(|node| format!("node/{}", node.metadata.name))),
        Format::Json | Format::Yaml => documents(&nodes, format),
        Format::Table | Format::Wide => {
            // The columns are those of the first nodes: a table can't grow one later.
            let (table, resources) = table.get_or_insert_with(|| {
                let resources = render::resources_of(&nodes);
                (render::node_table(&resources, &options), resources)
            });
            let now = render::Options { now: Timestamp::now(), ..options.clone() };
            let rows = nodes.iter().map(|node| render::node_row(node, resources, &now));
            write_rows(table, rows, &mut headers, &now)
        }
    })
    .await
}

/// Passes all objects, then all changes, to `show` until the user interrupts. A lost connection is retried, but an
/// error of the first request ends the watch.
async fn run<T: Resource>(
    server: &Server,
    selection: Selection,
    mut show: impl FnMut(Vec<T>) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let mut versions: BTreeMap<(Option<String>, String), String> = BTreeMap::new();
    let mut began = false;
    let mut lost = false;
    let mut changes = Box::pin(follow::<T>(server.client.clone(), selection));
    while let Some(change) = changes.next().await {
        let key = |object: &T| (object.metadata().namespace.clone(), object.metadata().name.clone());
        match change {
            Change::All(_, objects) => {
                if lost {
                    output::note("the inspector is available again");
                }
                (began, lost) = (true, false);
                // After an interruption only what is new or different is written.
                let old = std::mem::take(&mut versions);
                let mut news = Vec::new();
                for object in objects {
                    let (key, version) = (key(&object), object.metadata().resource_version.clone());
                    if version.is_empty() || old.get(&key) != Some(&version) {
                        news.push(object);
                    }
                    versions.insert(key, version);
                }
                show(news)?;
            }
            Change::Set(object) => {
                versions.insert(key(&object), object.metadata().resource_version.clone());
                show(vec![object])?;
            }
            Change::Gone(object) => {
                versions.remove(&key(&object));
                show(vec![object])?;
            }
            Change::Alive => {}
            Change::Lost(error) if !began || !error.is_temporary() => return Err(error.into()),
            Change::Lost(error) => {
                if !lost {
                    output::note(&format!("{}; waiting for the inspector", short(&error)));
                }
                lost = true;
            }
        }
    }
    Ok(Exit::Done)
}

fn short(error: &Error) -> String {
    error.to_string()
}

fn documents(objects: &[impl Serialize], format: Format) -> Result<(), Failure> {
    for object in objects {
        if format == Format::Yaml {
            output::plain("---\n")?;
        }
        output::document(object, format)?;
    }
    Ok(())
}

fn write_rows(
    table: &mut Table,
    rows: impl Iterator<Item = Vec<render::Painted>>,
    headers: &mut bool,
    options: &render::Options,
) -> Result<(), Failure> {
    let mut any = false;
    for row in rows {
        table.push(row);
        any = true;
    }
    if any {
        output::write(&table.take(std::mem::take(headers), options.width))?;
    }
    Ok(())
}
