//! Tables in the style of kubectl: columns padded with spaces, no borders, and a last column of any length.

use std::borrow::Cow;

use fluxion_text::clean;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::style::{DIM, Painted};

/// A table with column headers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<&'static str>,
    widths: Vec<usize>,
    rows: Vec<Vec<Painted>>,
}

impl Table {
    /// An empty table.
    pub fn new(columns: Vec<&'static str>) -> Self {
        let widths = columns.iter().map(|column| column.width()).collect();
        Self { columns, widths, rows: Vec::new() }
    }

    /// Adds a row; missing cells stay empty.
    pub fn push(&mut self, row: Vec<Painted>) {
        let row: Vec<Painted> = row
            .into_iter()
            .map(|cell| Painted { text: clean(&cell.text).into_owned(), style: cell.style })
            .collect();
        for (width, cell) in self.widths.iter_mut().zip(&row) {
            *width = (*width).max(cell.text.width());
        }
        self.rows.push(row);
    }

    /// Renders the rows added since the last call, optionally with headers. Columns never get narrower, so that
    /// later rows stay aligned if possible.
    pub fn take(&mut self, headers: bool, limit: Option<usize>) -> String {
        let mut text = String::new();
        if headers {
            let row = self.columns.iter().map(|column| Painted::new(*column, DIM)).collect::<Vec<_>>();
            self.line(&mut text, &row, limit);
        }
        for row in std::mem::take(&mut self.rows) {
            self.line(&mut text, &row, limit);
        }
        text
    }

    fn line(&self, text: &mut String, row: &[Painted], limit: Option<usize>) {
        const GAP: usize = 3;
        const LEAST: usize = 25;
        let mut used = 0;
        let last = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |last| last + 1);
        for (place, (cell, width)) in row.iter().zip(&self.widths).take(last).enumerate() {
            let is_last = place + 1 == self.widths.len();
            let shown = match limit {
                // Only the last column is cut: the others are what one selects and copies.
                // Where hardly anything would be left of it, the terminal may wrap it.
                Some(limit) if is_last && limit >= used + LEAST => cut(&cell.text, limit - used),
                _ => Cow::Borrowed(cell.text.as_str()),
            };
            let painted = Painted::new(shown.into_owned(), cell.style);
            let length = painted.text.width();
            put!(text, "{painted}");
            if place + 1 < last {
                let pad = width.saturating_sub(length) + GAP;
                text.extend(std::iter::repeat_n(' ', pad));
                used += length + pad;
            }
        }
        text.push('\n');
    }
}

/// Truncates a text to `width` columns, ending with `…` if truncated.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let mut short = String::new();
    for c in text.chars() {
        let step = c.width().unwrap_or(0);
        if used + step + 1 > width {
            break;
        }
        used += step;
        short.push(c);
    }
    if width > 0 {
        short.push('…');
    }
    Cow::Owned(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_are_padded_and_the_last_is_not() {
        let mut table = Table::new(vec!["NAME", "STATE"]);
        table.push(vec!["job/long-name".into(), "Pending".into()]);
        table.push(vec!["x".into(), "".into()]);
        assert_eq!(plain(&table.take(true, None)), "NAME            STATE\njob/long-name   Pending\nx\n");
    }

    #[test]
    fn later_rows_keep_the_columns() {
        let mut table = Table::new(vec!["NAME", "STATE"]);
        table.push(vec!["job/long-name".into(), "Pending".into()]);
        table.take(false, None);
        table.push(vec!["x".into(), "Running".into()]);
        assert_eq!(plain(&table.take(false, None)), "x               Running\n");
    }

    #[test]
    fn wide_characters_count_twice() {
        let mut table = Table::new(vec!["A", "B"]);
        table.push(vec!["日本".into(), "x".into()]);
        table.push(vec!["abcd".into(), "x".into()]);
        assert_eq!(plain(&table.take(false, None)), "日本   x\nabcd   x\n");
    }

    #[test]
    fn the_last_column_ends_at_the_edge_of_the_terminal() {
        let mut table = Table::new(vec!["NAME", "REASON"]);
        table.push(vec!["x".into(), "a reason that does not fit in here".into()]);
        assert_eq!(plain(&table.take(false, Some(35))), "x      a reason that does not fit …\n");
        table.push(vec!["x".into(), "a reason that does not fit in here".into()]);
        assert_eq!(plain(&table.take(false, Some(20))), "x      a reason that does not fit in here\n");
    }

    #[test]
    fn cutting_respects_width() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 0), "");
    }
}
