//! Text with places that are filled when it is sent: what depends on who asks, and on what time it is.

use serde::Serialize;

use super::columns::{Cell, since, until};

/// What is to be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hole {
    /// Members of the status that depend on who asks; each with a comma behind it.
    Seen,
    /// The place in the queue, as a cell.
    Position,
    /// Time since an instant, as a cell.
    Since(i64),
    /// Time until an instant, as a cell.
    Until(i64),
}

/// Text with such places.
#[derive(Debug, Default)]
pub(super) struct Template {
    text: Vec<u8>,
    /// In order of their places in the text.
    holes: Vec<(usize, Hole)>,
}

impl Template {
    /// Text as it is.
    pub(super) fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    pub(super) fn push_hole(&mut self, hole: Hole) {
        self.holes.push((self.text.len(), hole));
    }

    /// A value as JSON.
    pub(super) fn push_json(&mut self, value: &impl Serialize) -> Result<(), serde_json::Error> {
        serde_json::to_writer(&mut self.text, value)
    }

    /// An object as JSON, with a place for what depends on who asks before its members, of which there is at least one.
    pub(super) fn push_seen(&mut self, value: &impl Serialize) -> Result<(), serde_json::Error> {
        let start = self.text.len();
        self.push_json(value)?;
        self.holes.push((start + 1, Hole::Seen));
        Ok(())
    }

    /// Cells, as a JSON list.
    pub(super) fn of_cells(cells: &[Cell]) -> Result<Self, serde_json::Error> {
        let mut row = Self::default();
        for (index, cell) in cells.iter().enumerate() {
            row.push(if index == 0 { "[" } else { "," });
            match cell {
                Cell::Text(text) => row.push_json(text)?,
                Cell::Number(number) => row.push_json(number)?,
                Cell::Since(then) => row.push_hole(Hole::Since(*then)),
                Cell::Until(then) => row.push_hole(Hole::Until(*then)),
                Cell::Position => row.push_hole(Hole::Position),
            }
        }
        row.push(if cells.is_empty() { "[]" } else { "]" });
        Ok(row)
    }

    /// Gives back what was allocated and is not used.
    pub(super) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.holes.shrink_to_fit();
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.text.capacity() + self.holes.capacity() * size_of::<(usize, Hole)>()
    }

    /// Writes it as of `now` (epoch seconds), with what `fill` says in the places that depend on who asks.
    pub(super) fn write(&self, out: &mut Vec<u8>, now: i64, mut fill: impl FnMut(Hole, &mut Vec<u8>)) {
        let mut from = 0;
        for (at, hole) in &self.holes {
            out.extend_from_slice(&self.text[from..*at]);
            from = *at;
            let text = match hole {
                Hole::Since(then) => since(*then, now),
                Hole::Until(then) => until(*then, now),
                Hole::Seen | Hole::Position => {
                    fill(*hole, out);
                    continue;
                }
            };
            // Digits and letters: nothing that JSON escapes.
            out.push(b'"');
            out.extend_from_slice(text.as_bytes());
            out.push(b'"');
        }
        out.extend_from_slice(&self.text[from..]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_filled_when_they_are_written() {
        let cells = [
            Cell::text("a\"b"),
            Cell::Number(-3),
            Cell::Since(100),
            Cell::Until(500),
            Cell::Until(7),
            Cell::Position,
            Cell::none(),
        ];
        let row = Template::of_cells(&cells).unwrap();
        let mut out = Vec::new();
        row.write(&mut out, 160, |_, out| out.extend_from_slice(b"null"));
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value, json!(["a\"b", -3, "60s", "5m40s", "now", null, "-"]));
    }

    #[test]
    fn what_depends_on_who_asks_stands_among_the_other_members() {
        let mut template = Template::default();
        template.push_seen(&json!({ "state": "Pending" })).unwrap();
        for (seen, expected) in [
            ("", json!({"state": "Pending"})),
            ("\"position\":3,", json!({"position": 3, "state": "Pending"})),
        ] {
            let mut out = Vec::new();
            template.write(&mut out, 0, |_, out| out.extend_from_slice(seen.as_bytes()));
            assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), expected);
        }
    }
}
