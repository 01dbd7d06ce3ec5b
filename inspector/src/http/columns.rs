//! The columns of tables as `kubectl get` prints them, and what stands in their cells.

use serde::Serialize;

/// One column.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Column {
    pub name: &'static str,
    /// `string` or `integer`.
    #[serde(rename = "type")]
    pub type_: &'static str,
    /// `name` where the cell names the object.
    pub format: &'static str,
    pub description: &'static str,
    /// 0; 1 where it is shown with `-o wide` only.
    pub priority: u8,
}

impl Column {
    /// The column that names the object.
    pub(super) const fn name(description: &'static str) -> Self {
        Self { name: "Name", type_: "string", format: "name", description, priority: 0 }
    }

    /// A column of texts.
    pub(super) const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, type_: "string", format: "", description, priority: 0 }
    }

    /// A column of whole numbers.
    pub(super) const fn number(name: &'static str, description: &'static str) -> Self {
        Self { name, type_: "integer", format: "", description, priority: 0 }
    }

    /// The same column, shown with `-o wide` only.
    pub(super) const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }
}

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Text(String),
    Number(i64),
    /// Time since then, in epoch seconds.
    Since(i64),
    /// Time until then, in epoch seconds.
    Until(i64),
    /// Place in the queue, which depends on who asks.
    Position,
}

impl Cell {
    /// What somebody else wrote, fit for a terminal; a dash when it is empty.
    pub(super) fn foreign(text: &str) -> Self {
        Self::text(fluxion_text::clean(text).into_owned())
    }

    /// A text; a dash when it is empty.
    pub(super) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Text(if text.is_empty() { "-".to_owned() } else { text })
    }

    /// Nothing to tell.
    pub(super) fn none() -> Self {
        Self::text("")
    }

    /// Time since an instant as the API writes it (RFC 3339).
    pub(super) fn since(time: Option<&str>) -> Self {
        seconds(time).map_or_else(Self::none, Self::Since)
    }

    /// Time until such an instant.
    pub(super) fn until(time: Option<&str>) -> Self {
        seconds(time).map_or_else(Self::none, Self::Until)
    }
}

fn seconds(time: Option<&str>) -> Option<i64> {
    time?.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

/// Time since `then`, as kubectl writes ages.
pub(super) fn since(then: i64, now: i64) -> String {
    fluxion_text::short(now.saturating_sub(then))
}

/// Time until `then`.
pub(super) fn until(then: i64, now: i64) -> String {
    match then.saturating_sub(now) {
        ..=0 => "now".to_owned(),
        left => fluxion_text::short(left),
    }
}

/// A `Table` up to its rows: what follows are these, separated by commas, and `]}`.
pub(super) fn table(
    api_version: &str,
    metadata: &impl Serialize,
    columns: Option<&[Column]>,
) -> Result<String, serde_json::Error> {
    let metadata = serde_json::to_string(metadata)?;
    let columns = match columns {
        Some(columns) => format!(r#","columnDefinitions":{}"#, serde_json::to_string(columns)?),
        None => String::new(),
    };
    Ok(format!(r#"{{"kind":"Table","apiVersion":"{api_version}","metadata":{metadata}{columns},"rows":["#))
}
