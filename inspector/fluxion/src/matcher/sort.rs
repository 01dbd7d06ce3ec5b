//! Putting candidates in order. Which of several equals comes first decides who gets what, so the order
//! is exactly that of the introsort in GNU's C++ library, when asked for; else it is stable.

/// Ranges up to this length are left to insertion.
const SMALL: usize = 16;

/// Sorts so that `less` holds from front to back; equals end up where GNU's sort leaves them. Only the
/// first `wanted` items need to be right: what is behind them is not looked at more than necessary,
/// which makes it linear in the number of items.
pub(super) fn introsort<T>(items: &mut [T], wanted: usize, less: &impl Fn(&T, &T) -> bool) {
    let end = match items.len() {
        0 | 1 => return,
        len if len <= SMALL => len,
        len => split(items, 2 * len.ilog2(), wanted, less),
    };
    for at in 1..end {
        let mut to = at;
        while to > 0 && less(&items[at], &items[to - 1]) {
            to -= 1;
        }
        items[to..=at].rotate_right(1);
    }
}

/// Sorts pairs so that equal keys stay in order of their second parts, of which each occurs once and
/// which come ascending or were put in order by an earlier call. At least the first `wanted` are right.
pub(super) fn stable_front(items: &mut [(i64, u32)], wanted: usize) {
    let places: Vec<u32> = items.iter().map(|item| item.1).collect();
    if places.is_sorted() {
        if wanted < items.len() {
            items.select_nth_unstable(wanted);
        }
        let end = wanted.min(items.len());
        items[..end].sort_unstable();
    } else {
        items.sort_by_key(|item| item.0);
    }
}

/// Splits into small ranges, of which none has an item that belongs before one of an earlier range.
/// Answers up to where that was done; at least `wanted`.
fn split<T>(items: &mut [T], mut depth: u32, wanted: usize, less: &impl Fn(&T, &T) -> bool) -> usize {
    let mut len = items.len();
    let mut done = None;
    while len > SMALL {
        if depth == 0 {
            heap_sort(&mut items[..len], less);
            break;
        }
        depth -= 1;
        let cut = partition(&mut items[..len], less);
        if cut < wanted {
            let more = split(&mut items[cut..len], depth, wanted - cut, less);
            done = done.or(Some(cut + more));
        }
        len = cut;
    }
    done.unwrap_or(len)
}

/// Partitions around the median of three, which is put first; answers where the back part starts.
fn partition<T>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) -> usize {
    let (low, mid, last) = (1, items.len() / 2, items.len() - 1);
    let below = |a: usize, b: usize| less(&items[a], &items[b]);
    let median = if below(low, mid) {
        if below(mid, last) {
            mid
        } else if below(low, last) {
            last
        } else {
            low
        }
    } else if below(low, last) {
        low
    } else if below(mid, last) {
        last
    } else {
        mid
    };
    items.swap(0, median);
    let (mut from, mut to) = (1, items.len());
    loop {
        while from < items.len() && less(&items[from], &items[0]) {
            from += 1;
        }
        to -= 1;
        while to > 0 && less(&items[0], &items[to]) {
            to -= 1;
        }
        if from >= to {
            return from;
        }
        items.swap(from, to);
        from += 1;
    }
}

fn heap_sort<T>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    for top in (0..items.len() / 2).rev() {
        sink(items, top, less);
    }
    for end in (1..items.len()).rev() {
        items.swap(0, end);
        sink(&mut items[..end], 0, less);
    }
}

/// Lets the item at `hole` fall to the bottom along the larger children, and rise again from there.
fn sink<T>(items: &mut [T], top: usize, less: &impl Fn(&T, &T) -> bool) {
    let mut hole = top;
    while 2 * hole + 1 < items.len() {
        let mut child = 2 * hole + 1;
        if child + 1 < items.len() && !less(&items[child + 1], &items[child]) {
            child += 1;
        }
        items.swap(hole, child);
        hole = child;
    }
    while hole > top {
        let parent = (hole - 1) / 2;
        if parent < top || !less(&items[parent], &items[hole]) {
            break;
        }
        items.swap(parent, hole);
        hole = parent;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(keys: &[i32]) -> Vec<usize> {
        let mut items: Vec<usize> = (0..keys.len()).collect();
        introsort(&mut items, keys.len(), &|a, b| keys[*a] < keys[*b]);
        items
    }

    #[test]
    fn leaves_equals_where_gnu_leaves_them() {
        type Key = fn(usize) -> i32;
        let cases: [(usize, Key, &str); 7] = [
            (16, |_| 0, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"),
            (17, |_| 0, "8 16 15 14 13 12 11 10 9 0 7 6 5 4 3 2 1"),
            (20, |_| 0, "10 19 18 17 16 15 14 13 12 11 0 9 8 7 6 5 4 3 2 1"),
            (
                32,
                |_| 0,
                "16 31 30 29 28 27 26 25 24 23 22 21 20 19 18 17 0 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1",
            ),
            (
                40,
                |_| 0,
                "30 21 22 23 24 25 26 27 28 29 20 31 32 33 34 35 36 37 38 39 10 1 2 3 4 5 6 7 8 9 0 11 12 \
                 13 14 15 16 17 18 19",
            ),
            (20, |i| i32::try_from(i % 4).unwrap(), "4 16 8 0 12 1 17 5 9 13 10 18 14 6 2 11 7 15 3 19"),
            (
                24,
                |i| i32::try_from(i % 8).unwrap(),
                "8 0 16 1 17 9 2 18 10 3 19 11 12 20 4 13 5 21 14 6 22 15 7 23",
            ),
        ];
        for (count, key, expected) in cases {
            let keys: Vec<i32> = (0..count).map(key).collect();
            let order: Vec<String> = sorted(&keys).iter().map(usize::to_string).collect();
            assert_eq!(order.join(" "), expected, "{count}");
        }
    }

    proptest! {
        #[test]
        fn sorts(keys in prop::collection::vec(-5..5_i32, 0..300)) {
            let order = sorted(&keys);
            prop_assert!(order.windows(2).all(|pair| keys[pair[0]] <= keys[pair[1]]));
            let mut all = order.clone();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..keys.len()));
            for wanted in [0, 1, 5, keys.len() / 2] {
                let mut items: Vec<usize> = (0..keys.len()).collect();
                introsort(&mut items, wanted, &|a, b| keys[*a] < keys[*b]);
                let shown = wanted.min(keys.len());
                prop_assert_eq!(&items[..shown], &order[..shown]);
            }
            let mut heap = order;
            heap_sort(&mut heap, &|a, b| keys[*a] < keys[*b]);
            prop_assert!(heap.windows(2).all(|pair| keys[pair[0]] <= keys[pair[1]]));
        }
    }
}
