//! A set optimized for a single element: a tree takes several hundred bytes for its first one.

use imbl::OrdSet;

/// An ordered set, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallSet<T: Ord + Clone> {
    /// The only element.
    one: Option<T>,
    /// All elements, if there are several.
    several: OrdSet<T>,
}

impl<T: Ord + Clone> Default for SmallSet<T> {
    fn default() -> Self {
        Self { one: None, several: OrdSet::new() }
    }
}

impl<T: Ord + Clone> SmallSet<T> {
    /// Adds an element; returns whether it is new.
    pub fn insert(&mut self, element: T) -> bool {
        if self.is_empty() {
            self.one = Some(element);
            return true;
        }
        if self.one.as_ref() == Some(&element) {
            return false;
        }
        self.several.extend(self.one.take());
        self.several.insert(element).is_none()
    }

    /// Removes an element; returns whether it existed.
    pub fn remove(&mut self, element: &T) -> bool {
        if self.one.as_ref() == Some(element) {
            self.one = None;
            return true;
        }
        let was_there = self.several.remove(element).is_some();
        if was_there && self.several.len() == 1 {
            self.one = std::mem::take(&mut self.several).into_iter().next();
        }
        was_there
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.one.is_none() && self.several.is_empty()
    }

    /// All elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.into_iter()
    }

    /// The last in order.
    pub fn last(&self) -> Option<&T> {
        self.one.as_ref().or_else(|| self.several.get_max())
    }
}

impl<'a, T: Ord + Clone> IntoIterator for &'a SmallSet<T> {
    type Item = &'a T;
    type IntoIter = std::iter::Chain<std::option::Iter<'a, T>, <&'a OrdSet<T> as IntoIterator>::IntoIter>;

    fn into_iter(self) -> Self::IntoIter {
        self.one.iter().chain(&self.several)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(changes in prop::collection::vec((any::<bool>(), 0_u8..5), 0..40)) {
            let (mut few, mut model) = (SmallSet::default(), BTreeSet::new());
            for (add, element) in changes {
                if add {
                    prop_assert_eq!(few.insert(element), model.insert(element));
                } else {
                    prop_assert_eq!(few.remove(&element), model.remove(&element));
                }
                prop_assert!(few.iter().eq(&model));
                prop_assert_eq!((few.is_empty(), few.last()), (model.is_empty(), model.last()));
                prop_assert!(few.several.len() != 1, "one is not kept in a tree");
            }
        }
    }
}
