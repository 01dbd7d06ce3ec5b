//! The three panes: nodes with usage bars, the queue and planned starts.

use fluxion_api::{FluxionJob, FluxionNode};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState};
use unicode_width::UnicodeWidthStr;

use super::theme::Theme;
use crate::render::{
    Amount, NodeUse, bar, clean, clock, gpus, hostlist, localised, members, request, unschedulable, until,
};
use crate::tui::app::{App, Pane, Show, planned_start};
use crate::tui::message::Key;

/// Draws a pane with its border.
pub(super) fn draw(frame: &mut Frame, area: Rect, app: &mut App, pane: Pane, theme: Theme) {
    let focused = app.focus == pane;
    let block = Block::bordered().title(title(app, pane)).border_style(theme.frame(focused));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if inner.is_empty() {
        return;
    }
    let height = usize::from(inner.height.saturating_sub(1));
    let (cursor, list) = app.cursor(pane);
    let length = list.len();
    let (window, chosen) = cursor.window(length, height);
    if length == 0 {
        frame.render_widget(Paragraph::new(nothing(app, pane)).style(theme.dim()), inner);
        return;
    }
    let shown = app.cursor(pane).1[window].to_vec();
    let (names, mut widths) = columns(pane, inner.width);
    // Names decide how wide their column is, up to half of the pane: cut ones can't be told apart.
    let longest = shown.iter().map(|key| name_in(app, pane, key).width()).max().unwrap_or_default();
    widths[0] = Constraint::Length(u16::try_from(longest.max(4)).unwrap_or(u16::MAX).min(inner.width / 2));
    let rows: Vec<Row> = shown
        .iter()
        .filter_map(|key| match pane {
            Pane::Nodes => app.nodes.objects.get(key).map(|node| node_row(node, inner.width, theme)),
            Pane::Queue => app.jobs.objects.get(key).map(|job| queue_row(app, job, inner.width, theme)),
            Pane::Reservations => app.jobs.objects.get(key).map(|job| planned_row(app, job, inner.width)),
        })
        .collect();
    let mut table = Table::new(rows, widths).header(Row::new(names).style(theme.dim()));
    if focused {
        table = table.row_highlight_style(theme.chosen());
    }
    let mut state = TableState::new().with_selected(Some(chosen));
    frame.render_stateful_widget(table, inner, &mut state);
}

fn title(app: &App, pane: Pane) -> String {
    match pane {
        Pane::Nodes => {
            let listed = app.lists.nodes.iter().filter_map(|key| app.nodes.objects.get(key));
            let closed = listed.filter(|node| unschedulable(node)).count();
            let closed = if closed == 0 { String::new() } else { format!(", {closed} unschedulable") };
            format!("Nodes: {}{closed}, by {}", app.lists.nodes.len(), app.node_order.name())
        }
        Pane::Queue => {
            let which = match app.show {
                Show::Waiting => "Waiting",
                Show::Running => "Running",
                Show::All => "All jobs",
            };
            format!("{which}: {}, by {}", app.lists.queue.len(), app.job_order.name())
        }
        Pane::Reservations => format!("Planned starts: {}", app.lists.reservations.len()),
    }
}

/// Placeholder text of an empty pane.
pub(super) fn nothing(app: &App, pane: Pane) -> &'static str {
    let (loaded, refused) = match pane {
        Pane::Nodes => (app.nodes.contact.is_some(), app.nodes.lost.is_some()),
        _ => (app.jobs.contact.is_some(), false),
    };
    if refused && !loaded {
        return "access denied";
    }
    if !loaded {
        return "loading …";
    }
    if !app.filter.is_empty() {
        return "nothing matches the filter";
    }
    match (pane, app.show) {
        (Pane::Nodes, _) => "no nodes found",
        (Pane::Queue, Show::Waiting) => "no waiting jobs (press a to show running jobs)",
        (Pane::Queue, Show::Running) => "no running jobs",
        (Pane::Queue, Show::All) => "no jobs found",
        (Pane::Reservations, _) => "no jobs with a planned start",
    }
}

/// Headers and widths of the columns that fit in `width`.
fn columns(pane: Pane, width: u16) -> (Vec<&'static str>, Vec<Constraint>) {
    let all: &[(&str, Constraint, u16)] = match pane {
        Pane::Nodes => &[
            ("NODE", Constraint::Fill(2), 0),
            ("CPU", Constraint::Length(18), 0),
            ("MEMORY", Constraint::Length(20), 50),
            ("GPU", Constraint::Length(13), 66),
            ("JOBS", Constraint::Length(4), 30),
        ],
        Pane::Queue => &[
            ("JOB", Constraint::Fill(3), 0),
            ("STATE", Constraint::Length(13), 0),
            ("MEMBERS", Constraint::Length(7), 45),
            ("ETA", Constraint::Length(6), 36),
            ("PRIO", Constraint::Length(5), 80),
            ("REQUEST", Constraint::Fill(3), 64),
            ("REASON", Constraint::Fill(5), 95),
        ],
        Pane::Reservations => &[
            ("JOB", Constraint::Fill(3), 0),
            ("IN", Constraint::Length(6), 0),
            ("STARTS", Constraint::Length(12), 45),
            ("NODES", Constraint::Fill(3), 60),
            ("WAITING FOR", Constraint::Fill(3), 75),
        ],
    };
    all.iter().filter(|(_, _, least)| width >= *least).map(|(name, size, _)| (*name, *size)).unzip()
}

/// Omits the cells whose columns do not fit, as `columns` does.
fn row<'a>(pane: Pane, width: u16, cells: impl IntoIterator<Item = (&'static str, Cell<'a>)>) -> Row<'a> {
    let (names, _) = columns(pane, width);
    Row::new(
        cells.into_iter().filter(|(name, _)| names.contains(name)).map(|(_, cell)| cell).collect::<Vec<_>>(),
    )
}

/// Text of the first column.
fn name_in(app: &App, pane: Pane, key: &Key) -> String {
    match pane {
        Pane::Nodes => app.nodes.objects.get(key).map(node_name).unwrap_or_default(),
        _ => app.jobs.objects.get(key).map(|job| name_of(app, job)).unwrap_or_default(),
    }
}

/// Name of the node, and why it does not accept Pods.
fn node_name(node: &FluxionNode) -> String {
    let name = clean(&node.metadata.name);
    if node.status.eligible {
        return name.into_owned();
    }
    format!("{name} ({})", clean(&node.status.reasons.join(", ")))
}

fn node_row(node: &FluxionNode, width: u16, theme: Theme) -> Row<'static> {
    let status = &node.status;
    let name = Span::styled(node_name(node), if status.eligible { Style::new() } else { theme.warn() });
    let gauge = |usage: NodeUse, resource: &str, cells: usize| {
        let share = usage.share;
        if share.whole == Amount::ZERO && share.used == Amount::ZERO {
            return Cell::from("-");
        }
        let text =
            format!("{} {}/{}", bar(share, cells), share.used.shown(resource), share.whole.shown(resource));
        Cell::from(text).style(theme.load(share.used.ratio(share.whole)))
    };
    let gpus = gpus(node);
    row(
        Pane::Nodes,
        width,
        [
            ("NODE", Cell::from(name)),
            ("CPU", gauge(NodeUse::of(node, "cpu"), "cpu", 8)),
            ("MEMORY", gauge(NodeUse::of(node, "memory"), "memory", 8)),
            ("GPU", gauge(gpus, "gpu", 6)),
            ("JOBS", Cell::from(status.jobs.len().to_string())),
        ],
    )
}

fn name_of(app: &App, job: &FluxionJob) -> String {
    let mut reference = job.reference();
    // The namespace only takes room where all jobs are of one.
    let first = app.jobs.objects.keys().next().map(|key| key.0.as_str());
    let last = app.jobs.objects.keys().next_back().map(|key| key.0.as_str());
    if first == last {
        reference.namespace = None;
    }
    clean(&reference.to_string()).into_owned()
}

fn queue_row(app: &App, job: &FluxionJob, width: u16, theme: Theme) -> Row<'static> {
    let status = &job.status;
    let state = if status.degraded {
        Span::styled("Degraded", theme.warn())
    } else {
        Span::styled(clean(status.state.as_str()).into_owned(), theme.state(&status.state))
    };
    let eta = if job.is_queued() {
        until(
            status.reservation.as_ref().map(|it| it.start.as_str()).or(status.planned_start.as_deref()),
            app.now,
        )
    } else {
        "-".to_owned()
    };
    let reason = status.reason.as_ref().map(|reason| reason.line()).unwrap_or_default();
    row(
        Pane::Queue,
        width,
        [
            ("JOB", Cell::from(name_of(app, job))),
            ("STATE", Cell::from(state)),
            ("MEMBERS", Cell::from(members(job))),
            ("ETA", Cell::from(eta)),
            ("PRIO", Cell::from(job.spec.priority.to_string())),
            ("REQUEST", Cell::from(clean(&request(job, false)).into_owned())),
            ("REASON", Cell::from(localised(&clean(&reason), app.now, &app.zone))),
        ],
    )
}

fn planned_row(app: &App, job: &FluxionJob, width: u16) -> Row<'static> {
    let start = planned_start(job).map(|start| start.to_string()).unwrap_or_default();
    let nodes = job.status.reservation.as_ref().map_or_else(String::new, |it| hostlist(&it.nodes, 20));
    let waits: Vec<&str> = job.status.waits_for.iter().map(|other| other.job.as_str()).collect();
    row(
        Pane::Reservations,
        width,
        [
            ("JOB", Cell::from(name_of(app, job))),
            ("IN", Cell::from(until(Some(&start), app.now))),
            ("STARTS", Cell::from(clock(&start, app.now, &app.zone))),
            ("NODES", Cell::from(clean(&nodes).into_owned())),
            ("WAITING FOR", Cell::from(clean(&waits.join(",")).into_owned())),
        ],
    )
}
