//! A vector in shared chunks: cloning copies one pointer, modifying an element copies its chunk.

use std::sync::Arc;

/// Elements per chunk: large enough for fast scans, small enough to copy for one change.
const CHUNK: usize = 128;

/// Unset elements have the default value, and chunks without any elements take no space.
#[derive(Clone, Debug)]
pub(super) struct CowVec<T> {
    chunks: Arc<Vec<Option<Arc<[T; CHUNK]>>>>,
}

impl<T> Default for CowVec<T> {
    fn default() -> Self {
        Self { chunks: Arc::new(Vec::new()) }
    }
}

fn place(index: u32) -> (usize, usize) {
    let index = index as usize;
    (index / CHUNK, index % CHUNK)
}

impl<T> CowVec<T> {
    /// The element, if its chunk exists.
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        let (chunk, offset) = place(index);
        self.chunks.get(chunk)?.as_deref()?.get(offset)
    }
}

impl<T: Clone + Default> CowVec<T> {
    /// The element, mutable; its chunk is created or copied if necessary.
    pub(super) fn slot(&mut self, index: u32) -> &mut T {
        let (chunk, offset) = place(index);
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.len() <= chunk {
            chunks.resize(chunk + 1, None);
        }
        let chunk = chunks[chunk].get_or_insert_with(|| Arc::new(std::array::from_fn(|_| T::default())));
        &mut Arc::make_mut(chunk)[offset]
    }
}

impl<T: Copy + Default> CowVec<T> {
    /// The element's value; the default if it was never set.
    pub(super) fn value(&self, index: u32) -> T {
        self.get(index).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_it_had() {
        let mut vec = CowVec::<u64>::default();
        *vec.slot(1000) = 7;
        let before = vec.clone();
        *vec.slot(1000) = 8;
        *vec.slot(3) = 1;
        assert_eq!((before.value(1000), before.value(3), before.value(100_000)), (7, 0, 0));
        assert_eq!((vec.value(1000), vec.value(3)), (8, 1));
        assert!(vec.get(500).is_none(), "the chunk between takes no space");
    }
}
