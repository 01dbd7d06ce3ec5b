//! The chosen line of a list that changes under it.

use std::ops::Range;

use super::message::Key;

/// Follows an object, not a place: when lines come and go above it, it stays on its object.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    key: Option<Key>,
    place: usize,
    offset: usize,
}

impl Cursor {
    /// The object it is on.
    pub(super) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Finds its object in the list anew; where that is gone, it stays at its place.
    pub(super) fn settle(&mut self, list: &[Key]) {
        if let Some(found) = self.key.as_ref().and_then(|key| list.iter().position(|it| it == key)) {
            self.place = found;
        } else {
            self.place = self.place.min(list.len().saturating_sub(1));
            self.key = list.get(self.place).cloned();
        }
    }

    /// Moves by so many lines, as far as there are any.
    pub(super) fn step(&mut self, list: &[Key], by: isize) {
        self.place = self.place.saturating_add_signed(by).min(list.len().saturating_sub(1));
        self.key = list.get(self.place).cloned();
    }

    /// The lines to show in a window of `height`, and which of them is chosen. Scrolls no more than it must.
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
