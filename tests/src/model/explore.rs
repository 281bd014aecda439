//! A breadth-first walk over every reachable state: the first trace found to a state is a shortest one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::Range;

/// A finite transition system.
pub trait Machine {
    /// One situation.
    type State: Copy + Eq + Hash;
    /// One step from a situation to the next.
    type Action: Copy + fmt::Debug;

    /// Where every walk begins.
    fn start(&self) -> Self::State;
    /// Puts every step that can be taken in `state` into `into`.
    fn actions(&self, state: &Self::State, into: &mut Vec<Self::Action>);
    /// The situation after `action`.
    fn step(&self, state: &Self::State, action: Self::Action) -> Self::State;
}

/// A question about single states.
pub struct Question<M: Machine> {
    /// What it asks, in the words of a hit.
    pub name: &'static str,
    /// A hit is what the walk looks for: a broken promise, or a situation worth a trace. The last argument is true where
    /// no step is left.
    pub hit: fn(&M, &M::State, bool) -> bool,
}

impl<M: Machine> fmt::Debug for Question<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What a complete walk found.
#[derive(Debug)]
pub struct Walk<A> {
    /// How many states can be reached.
    pub states: usize,
    /// For each question that was hit: its name and a shortest trace.
    pub hits: Vec<(&'static str, Vec<A>)>,
    /// Whether every path ends (no cycle), so that "in every last state" means "in the end, always".
    pub finite: bool,
}

impl<A> Walk<A> {
    /// The shortest trace to the question of this name, if it was hit.
    #[must_use]
    pub fn trace(&self, name: &str) -> Option<&[A]> {
        let (_, trace) = self.hits.iter().find(|(hit, _)| *hit == name)?;
        Some(trace)
    }

    /// The names of the questions that were hit.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.hits.iter().map(|(name, _)| *name).collect()
    }
}

/// Walks all states of `machine` and answers `questions`.
pub fn explore<M: Machine>(machine: &M, questions: &[Question<M>]) -> Walk<M::Action> {
    let mut search = Search::from(machine);
    let mut open: Vec<&Question<M>> = questions.iter().collect();
    let mut hits = Vec::new();
    let mut at = 0;
    while let Some((state, last)) = search.expand(at) {
        open.retain(|question| {
            let hit = (question.hit)(machine, &state, last);
            if hit {
                hits.push((question.name, search.trace(at)));
            }
            !hit
        });
        at += 1;
    }
    Walk {
        states: search.nodes.len(),
        hits,
        finite: search.acyclic(),
    }
}

/// A shortest trace to a hit of `question`; the walk ends there.
pub fn shortest<M: Machine>(machine: &M, question: &Question<M>) -> Option<Vec<M::Action>> {
    let mut search = Search::from(machine);
    let mut at = 0;
    while let Some((state, last)) = search.expand(at) {
        if (question.hit)(machine, &state, last) {
            return Some(search.trace(at));
        }
        at += 1;
    }
    None
}

struct Search<'m, M: Machine> {
    machine: &'m M,
    nodes: Vec<Node<M>>,
    known: HashMap<M::State, usize, BuildHasherDefault<Mix>>,
    /// Where each step leads, in the order of the nodes they start from.
    edges: Vec<usize>,
    /// The steps of the node at hand, kept to spare an allocation a node.
    actions: Vec<M::Action>,
}

struct Node<M: Machine> {
    state: M::State,
    parent: Option<(usize, M::Action)>,
    leads: Range<usize>,
    /// How many steps lead here.
    incoming: usize,
}

impl<M: Machine> Node<M> {
    const fn new(state: M::State, parent: Option<(usize, M::Action)>) -> Self {
        let incoming = parent.is_some() as usize;
        Self {
            state,
            parent,
            leads: 0..0,
            incoming,
        }
    }
}

impl<'m, M: Machine> Search<'m, M> {
    fn from(machine: &'m M) -> Self {
        let start = machine.start();
        Self {
            machine,
            nodes: vec![Node::new(start, None)],
            known: HashMap::from_iter([(start, 0)]),
            edges: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// Takes every step from node `at`; its state, and whether there was no step to take.
    fn expand(&mut self, at: usize) -> Option<(M::State, bool)> {
        let state = self.nodes.get(at)?.state;
        let first = self.edges.len();
        self.actions.clear();
        self.machine.actions(&state, &mut self.actions);
        for &action in &self.actions {
            let to = match self.known.entry(self.machine.step(&state, action)) {
                Entry::Occupied(known) => {
                    let to = *known.get();
                    if let Some(node) = self.nodes.get_mut(to) {
                        node.incoming += 1;
                    }
                    to
                }
                Entry::Vacant(vacant) => {
                    let to = self.nodes.len();
                    self.nodes
                        .push(Node::new(*vacant.key(), Some((at, action))));
                    *vacant.insert(to)
                }
            };
            self.edges.push(to);
        }
        let leads = first..self.edges.len();
        let last = leads.is_empty();
        self.nodes.get_mut(at)?.leads = leads;
        Some((state, last))
    }

    fn trace(&self, at: usize) -> Vec<M::Action> {
        let parent = |at: usize| self.nodes.get(at).and_then(|node| node.parent);
        let mut trace: Vec<_> = std::iter::successors(parent(at), |(before, _)| parent(*before))
            .map(|(_, action)| action)
            .collect();
        trace.reverse();
        trace
    }

    /// Kahn's algorithm: a graph without cycles can be taken apart from its start.
    fn acyclic(mut self) -> bool {
        let mut ready = Vec::new();
        if self.nodes.first().is_some_and(|start| start.incoming == 0) {
            ready.push(0);
        }
        let mut taken = 0;
        while let Some(node) = ready.pop().and_then(|at| self.nodes.get(at)) {
            taken += 1;
            for &to in self.edges.get(node.leads.clone()).unwrap_or_default() {
                if let Some(next) = self.nodes.get_mut(to) {
                    next.incoming -= 1;
                    if next.incoming == 0 {
                        ready.push(to);
                    }
                }
            }
        }
        taken == self.nodes.len()
    }
}

/// A small fast hasher; states that hash alike are still compared in full.
#[derive(Debug, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }
    fn write_isize(&mut self, value: isize) {
        self.write_u64(u64::from_ne_bytes(value.to_ne_bytes()));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}
