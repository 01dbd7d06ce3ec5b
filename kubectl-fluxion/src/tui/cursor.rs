//! The selected line of a list that changes.

use std::ops::Range;

use super::message::Key;

/// Follows an object rather than a position: it stays on the object when lines above it change.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    key: Option<Key>,
    place: usize,
    offset: usize,
}

impl Cursor {
    /// The selected object.
    pub(super) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Finds the selected object in an updated list; if it no longer exists, the position is kept.
    pub(super) fn settle(&mut self, list: &[Key]) {
        if let Some(found) = self.key.as_ref().and_then(|key| list.iter().position(|it| it == key)) {
            self.place = found;
        } else {
            self.place = self.place.min(list.len().saturating_sub(1));
            self.key = list.get(self.place).cloned();
        }
    }

    /// Moves by a number of lines, within the list.
    pub(super) fn step(&mut self, list: &[Key], by: isize) {
        self.place = self.place.saturating_add_signed(by).min(list.len().saturating_sub(1));
        self.key = list.get(self.place).cloned();
    }

    /// The lines visible in a window of `height`, and which of them is selected. Scrolls as little as possible.
    pub(super) fn window(&mut self, length: usize, height: usize) -> (Range<usize>, usize) {
        if height == 0 || length == 0 {
            return (0..0, 0);
        }
        let place = self.place.min(length - 1);
        let lowest = (place + 1).saturating_sub(height);
        self.offset = self.offset.clamp(lowest, place).min(length.saturating_sub(height));
        let end = (self.offset + height).min(length);
        (self.offset..end, place - self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<Key> {
        names.iter().map(|name| (String::new(), (*name).to_owned())).collect()
    }

    #[test]
    fn it_stays_on_its_object() {
        let mut cursor = Cursor::default();
        cursor.settle(&keys(&["a", "b", "c"]));
        cursor.step(&keys(&["a", "b", "c"]), 1);
        cursor.settle(&keys(&["x", "a", "b", "c"]));
        assert_eq!(cursor.key().unwrap().1, "b");
        cursor.settle(&keys(&["x", "a", "c"]));
        assert_eq!(cursor.key().unwrap().1, "c");
        cursor.settle(&keys(&[]));
        assert_eq!(cursor.key(), None);
    }

    #[test]
    fn it_scrolls_no_more_than_it_must() {
        let list = keys(&["a", "b", "c", "d", "e"]);
        let mut cursor = Cursor::default();
        cursor.settle(&list);
        assert_eq!(cursor.window(5, 3), (0..3, 0));
        cursor.step(&list, 3);
        assert_eq!(cursor.window(5, 3), (1..4, 2));
        cursor.step(&list, -1);
        assert_eq!(cursor.window(5, 3), (1..4, 1));
        cursor.step(&list, -99);
        assert_eq!(cursor.window(5, 3), (0..3, 0));
        cursor.step(&list, 99);
        assert_eq!(cursor.window(5, 0), (0..0, 0));
        assert_eq!(cursor.window(5, 100), (0..5, 4));
    }
}
