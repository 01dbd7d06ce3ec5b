//! Draws the interactive view at any size; panes that do not fit are omitted, the focused pane last.

mod detail;
mod over;
mod panes;
mod theme;

use fluxion_api::Role;
use fluxion_api::client::Error;
use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::app::{App, Over, Pane};
use crate::render::{Amount, NodeUse, bar, clean, cut, short};
use theme::Theme;

/// Draws the view. Only scroll positions are changed.
pub fn view(frame: &mut Frame, app: &mut App) {
    app.settle();
    let theme = Theme::of(app);
    let area = frame.area();
    let stale = u16::from(app.stale().is_some() || app.warning.is_some());
    let [head, banner, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(stale),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    header(frame, head, app, theme);
    stale_banner(frame, banner, app, theme);
    if let Some(Over::Detail { pane, key, scroll }) = &mut app.over {
        let (pane, key) = (*pane, key.clone());
        let lines = detail::lines(
            app_parts(&app.jobs, &app.nodes, app.explained.as_ref()),
            pane,
            &key,
            app.now,
            &app.zone,
        );
        *scroll = detail::full(frame, body, &key, lines, *scroll, theme);
    } else {
        panes_of(frame, body, app, theme);
    }
    footer(frame, foot, app, theme);
    over::draw(frame, body, app, theme);
    make_safe(frame);
}

/// Replaces unsafe characters in all cells before they are written to the terminal.
fn make_safe(frame: &mut Frame) {
    for cell in &mut frame.buffer_mut().content {
        if cell.symbol().contains(fluxion_text::is_unsafe) {
            cell.set_char(char::REPLACEMENT_CHARACTER);
        }
    }
}

fn app_parts<'a>(
    jobs: &'a super::app::Feed<fluxion_api::FluxionJob>,
    nodes: &'a super::app::Feed<fluxion_api::FluxionNode>,
    explained: Option<&'a (super::message::Key, Box<fluxion_api::FluxionExplanation>)>,
) -> detail::Known<'a> {
    detail::Known { jobs: &jobs.objects, nodes: &nodes.objects, explained }
}

/// Panes side by side if there is enough room, otherwise stacked, otherwise only the focused pane.
fn panes_of(frame: &mut Frame, area: Rect, app: &mut App, theme: Theme) {
    let (wide, high) = (area.width >= 110, area.height >= 20);
    if wide && high {
        let [left, right] = Layout::horizontal([Constraint::Percentage(42), Constraint::Fill(1)]).areas(area);
        let [nodes, detail] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(left);
        let [queue, reservations] = Layout::vertical([Constraint::Fill(2), Constraint::Fill(1)]).areas(right);
        panes::draw(frame, nodes, app, Pane::Nodes, theme);
        panes::draw(frame, queue, app, Pane::Queue, theme);
        panes::draw(frame, reservations, app, Pane::Reservations, theme);
        small_detail(frame, detail, app, theme);
    } else if high {
        let [nodes, queue, reservations, detail] = Layout::vertical([
            Constraint::Fill(2),
            Constraint::Fill(3),
            Constraint::Fill(2),
            Constraint::Length(if area.height >= 32 { 9 } else { 0 }),
        ])
        .areas(area);
        panes::draw(frame, nodes, app, Pane::Nodes, theme);
        panes::draw(frame, queue, app, Pane::Queue, theme);
        panes::draw(frame, reservations, app, Pane::Reservations, theme);
        small_detail(frame, detail, app, theme);
    } else {
        panes::draw(frame, area, app, app.focus, theme);
    }
}

/// Details of the selected line, truncated.
fn small_detail(frame: &mut Frame, area: Rect, app: &mut App, theme: Theme) {
    if area.is_empty() {
        return;
    }
    let focus = app.focus;
    let Some(key) = app.cursor(focus).0.key().cloned() else {
        let block = Block::bordered().title("Details").border_style(theme.dim());
        let text = Paragraph::new(panes::nothing(app, focus)).style(theme.dim()).block(block);
        frame.render_widget(text, area);
        return;
    };
    let known = app_parts(&app.jobs, &app.nodes, app.explained.as_ref());
    let lines = detail::lines(known, focus, &key, app.now, &app.zone);
    detail::part(frame, area, lines, theme);
}

fn header(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let mut spans = vec![Span::styled("Fluxion ", theme.bold())];
    let cpu =
        app.nodes.objects.values().fold(NodeUse::default(), |sum, node| sum.plus(NodeUse::of(node, "cpu")));
    if cpu.share.whole > Amount::ZERO {
        let percent = cpu.share.used.ratio(cpu.share.whole) * 100.0;
        spans.push(Span::raw(format!("cpu {} {percent:.0}%  ", bar(cpu.share, 10))));
    }
    let count = |wanted: fn(&fluxion_api::FluxionJob) -> bool| {
        app.jobs.objects.values().filter(|job| wanted(job)).count()
    };
    let waiting = count(fluxion_api::FluxionJob::is_queued);
    let running = count(|job| !job.is_queued() && !job.has_ended());
    spans.push(Span::raw(format!("{running} running, {waiting} waiting  ")));
    match app.findings.as_ref().map(Vec::len) {
        Some(0) | None => {}
        Some(1) => spans.push(Span::styled("1 problem  ", theme.bad())),
        Some(number) => spans.push(Span::styled(format!("{number} problems  "), theme.bad())),
    }
    let role =
        if app.role == Role::default() { String::new() } else { format!(" ({})", clean(app.role.as_str())) };
    spans.push(Span::styled(format!("{}{role}", clean(&app.server)), theme.dim()));
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// Why the data may be stale: the connection is lost, or the server reports it.
fn stale_banner(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let age = |since: Timestamp| short(app.now.as_second() - since.as_second());
    let text = if let Some((contact, error)) = app.stale() {
        let age = match contact {
            Some(contact) => format!("STALE, {} old", age(contact)),
            None => "NO DATA YET".to_owned(),
        };
        // Who is asked stands in the line above, and what to do is being done.
        let why = match error {
            Error::Unreachable { why, .. } => why.clone(),
            Error::NotReady { message, .. } => format!("not ready: {message}"),
            Error::TimedOut { limit, .. } => format!("no response within {}s", limit.as_secs_f64()),
            other => other.to_string(),
        };
        format!(" {age}: {}; retrying ", clean(&why))
    } else if let Some((warning, current)) = &app.warning {
        let age = current.map(|current| format!("data {} old: ", age(current))).unwrap_or_default();
        format!(" {age}{} ", clean(warning))
    } else {
        return;
    };
    frame.render_widget(
        Paragraph::new(cut(&text, usize::from(area.width)).into_owned()).style(theme.alarm()),
        area,
    );
}

fn footer(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let line = if app.typing {
        Line::from(vec![
            Span::styled("filter: ", theme.bold()),
            Span::raw(app.filter.clone()),
            Span::styled("▏", theme.bold()),
        ])
    } else if let Some(notice) = &app.notice {
        let style = if notice.good { theme.good() } else { theme.bad() };
        Line::styled(clean(&notice.text).into_owned(), style)
    } else {
        let mut text = match app.over {
            Some(Over::Detail { pane: Pane::Nodes, .. }) => "esc back  ↑↓ scroll".to_owned(),
            Some(Over::Detail { .. }) => "esc back  ↑↓ scroll  c cancel".to_owned(),
            Some(_) => String::new(),
            None => "? help  tab pane  enter details  / filter  s sort  a jobs  c cancel  q quit".to_owned(),
        };
        if !app.filter.is_empty() {
            text = format!("filter '{}' (esc to clear)  {text}", clean(&app.filter));
        }
        Line::styled(text, theme.dim())
    };
    frame.render_widget(Paragraph::new(line), area);
}
