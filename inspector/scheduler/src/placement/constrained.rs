//! Placing gangs under constraints between Pods: slots are added one by one, each where it is allowed at that moment.
//!
//! The first attempt takes the first node that is allowed. If that fails, further ones begin in each of the domains, and
//! then a search with backtracking looks at the first node of each domain, and at last at every node, within a budget
//! of nodes looked at. A search that ends within its budget is complete.

use std::collections::{BTreeMap, BTreeSet};

use super::availability::Availability;
use super::board::{Board, Fit};
use super::filling::{Taken, Work};
use super::plan::Plan;
use super::rules::Rules;
use crate::inventory::NodeId;

/// Nodes looked at, once per shape, in addition to …
const BUDGET: u64 = 50_000;
/// … so many times all of them.
const ROUNDS: u64 = 20;
/// Nodes looked at in the first attempt, which suffices for gangs of thousands.
const FIRST: u64 = 20_000_000;
/// Maximum number of slots of a gang with such constraints: they are placed one by one.
const MOST_SLOTS: u64 = 100_000;

/// The result of a search.
pub(super) struct Attempt {
    /// The slots: all, at least the minimum, or as many as the best attempt placed.
    pub(super) taken: Taken,
    /// All slots, or at least the minimum, are placed.
    pub(super) placed: bool,
    /// The budget ended before everything was tried.
    pub(super) cut: bool,
}

/// Slots on these nodes, in this order of preference.
pub(super) fn search(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    rules: Rules,
    nodes: &[NodeId],
    work: &mut Work,
) -> Attempt {
    if plan.slots() > MOST_SLOTS {
        return Attempt { taken: Taken::new(), placed: false, cut: true };
    }
    let exact = rules.greedy_is_exact();
    let mut board = Board::new(plan, availability, rules, nodes);
    let goal = plan.minimum.map_or_else(|| plan.slots(), u64::from);
    board.fill(FIRST);
    let mut best = board.taken();
    let mut count = board.count();
    let mut cut = board.looked >= FIRST;
    if count < goal && !cut && !exact && enough_room(&mut board, goal) {
        let budget = board.looked + BUDGET + ROUNDS * nodes.len() as u64 * plan.shapes.len() as u64;
        let classes = classes(&board);
        let mut keep = |board: &Board<'_>| {
            if board.count() > count {
                count = board.count();
                best = board.taken();
            }
            count >= goal
        };
        let mut found = false;
        for class in 0..classes.1 {
            if board.looked >= budget {
                break;
            }
            begin_in(&mut board, &classes.0, class, budget);
            found = keep(&board);
            if found {
                break;
            }
        }
        if !found {
            // Every node is its own class in the last one.
            let each: Vec<usize> = (0..nodes.len()).collect();
            for (classes, number) in [classes, (each, nodes.len())] {
                let part = if number == nodes.len() { budget } else { u64::midpoint(board.looked, budget) };
                board.clear();
                let end = backtrack(&mut board, &classes, goal, part);
                cut = end == End::Cut;
                if end == End::Found {
                    board.fill(budget);
                    keep(&board);
                }
                if end == End::Found || end == End::Nothing && number == nodes.len() {
                    break;
                }
            }
        }
    }
    work.visited += board.looked;
    let placed = count >= goal;
    Attempt { taken: best, placed, cut: cut && !placed }
}

/// Whether the room of all nodes, by shape, may suffice for the goal.
fn enough_room(board: &mut Board<'_>, goal: u64) -> bool {
    let mut sum = 0;
    for shape in 0..board.plan.shapes.len() {
        let count = u64::from(board.plan.shapes[shape].count);
        let mut room = 0_u64;
        for position in 0..board.nodes.len() {
            room += u64::from(board.room(position, shape));
            if room >= count {
                break;
            }
        }
        sum += room.min(count);
    }
    sum >= goal
}

/// The class of each position, and the number of classes: nodes in the same domains.
fn classes(board: &Board<'_>) -> (Vec<usize>, usize) {
    let mut known: BTreeMap<Vec<Option<usize>>, usize> = BTreeMap::new();
    let mut of = Vec::with_capacity(board.nodes.len());
    for id in board.nodes {
        let next = known.len();
        of.push(*known.entry(board.rules.signature(*id)).or_insert(next));
    }
    (of, known.len())
}

/// Fills the nodes anew, with the first slot in this class.
fn begin_in(board: &mut Board<'_>, classes: &[usize], class: usize, budget: u64) {
    board.clear();
    for shape in 0..board.plan.shapes.len() {
        for (position, of) in classes.iter().enumerate() {
            if *of == class && board.fits(position, shape) == Fit::Yes {
                board.place(position, shape);
                board.fill(budget);
                return;
            }
        }
    }
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Found,
    Nothing,
    Cut,
}

/// The alternatives at one depth of the search: the next one is looked for when it is needed.
struct Frame {
    /// Where to go on.
    shape: usize,
    position: usize,
    /// Classes tried for this shape.
    tried: BTreeSet<usize>,
    /// The slot that was placed.
    placed: Option<(usize, usize)>,
}

impl Frame {
    fn new() -> Self {
        Self { shape: 0, position: 0, tried: BTreeSet::new(), placed: None }
    }

    /// The next slot that fits: for each shape the first node of each class.
    fn next(&mut self, board: &mut Board<'_>, classes: &[usize], budget: u64) -> Option<(usize, usize)> {
        while self.shape < board.plan.shapes.len() {
            while board.wanted[self.shape] > 0 && self.position < board.nodes.len() {
                let position = self.position;
                self.position += 1;
                if board.looked >= budget {
                    return None;
                }
                let class = classes[position];
                if !self.tried.contains(&class) && board.fits(position, self.shape) == Fit::Yes {
                    self.tried.insert(class);
                    return Some((position, self.shape));
                }
            }
            self.shape += 1;
            self.position = 0;
            self.tried.clear();
        }
        None
    }
}

/// Depth first, until so many slots are placed. Numbers of slots by class that failed once are not tried again.
fn backtrack(board: &mut Board<'_>, classes: &[usize], goal: u64, budget: u64) -> End {
    /// Slots by class and shape.
    type Numbers = BTreeMap<(usize, usize), u32>;
    let mut numbers = Numbers::new();
    let mut seen: BTreeSet<Numbers> = BTreeSet::new();
    let mut stack = vec![Frame::new()];
    let mut depth = 0;
    while let Some(frame) = stack.last_mut() {
        if let Some((position, shape)) = frame.placed.take() {
            board.take_back(position, shape);
            depth -= 1;
            let key = (classes[position], shape);
            if let Some(number) = numbers.get_mut(&key) {
                *number -= 1;
                if *number == 0 {
                    numbers.remove(&key);
                }
            }
        }
        let Some((position, shape)) = frame.next(board, classes, budget) else {
            if board.looked >= budget {
                return End::Cut;
            }
            stack.pop();
            continue;
        };
        *numbers.entry((classes[position], shape)).or_default() += 1;
        board.place(position, shape);
        depth += 1;
        frame.placed = Some((position, shape));
        if depth == goal {
            return End::Found;
        }
        // What is remembered counts as work too, so that it is bounded.
        board.looked += 1 + numbers.len() as u64;
        if seen.insert(numbers.clone()) {
            stack.push(Frame::new());
        }
    }
    End::Nothing
}
