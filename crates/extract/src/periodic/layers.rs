//! The lowest points of a stream for every slope: the lower hull, the lower hull of what is left without it, and so on.
//!
//! The k lowest points in any direction lie in the first k layers. Points are kept as they come and reduced now and then, most of them by a
//! comparison; what is left then is a function of the points alone.

use crate::hull::{self, Point};
use std::cell::RefCell;

/// How many points are taken before they are reduced.
const ROOM: usize = 256;

/// Points that may be left out for being high, whatever their layers: of the newest, so many are not looked at.
const MARGIN: usize = 48;

/// In each margin, as many points lie as low as those that are kept between.
const ANCHORS: usize = 10;

/// Points in order of x, among them the first layers.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    points: Vec<Point>,
    /// How many of them have been reduced before.
    reduced: usize,
    depth: u8,
}

impl Layers {
    pub fn new(depth: usize) -> Layers {
        Layers { points: Vec::new(), reduced: 0, depth: depth as u8 }
    }

    /// Adds a point to the right of all others.
    #[inline]
    pub fn push(&mut self, point: Point) {
        if self.points.len() >= self.reduced + ROOM {
            self.reduce();
        }
        self.points.push(point);
    }

    /// All points of the first layers, and perhaps others.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Adds points that lie to the right of all points here, moved by `(x, y)`.
    pub fn append(&mut self, later: &Layers, x: i64, y: i64) {
        self.points.extend(later.points.iter().map(|point| Point { x: point.x + x, y: point.y + y }));
        if self.points.len() >= self.reduced + ROOM {
            self.reduce();
        }
    }

    /// Moves all points up or down.
    pub fn lift(&mut self, y: i64) {
        self.points.iter_mut().for_each(|point| point.y += y);
    }

    /// Keeps the points of the first layers alone, and no more memory than they need.
    pub fn settle(&mut self) {
        self.reduce();
        self.points.shrink_to_fit();
    }

    /// Keeps the first layer alone, of at most so many points; whether corners had to be cut.
    pub fn flatten(&mut self, most: usize) -> bool {
        self.depth = 1;
        self.reduce();
        let is_cut = self.points.len() > most;
        if is_cut {
            hull::cut_corners(&mut self.points, most * 3 / 4);
        }
        self.reduced = self.points.len();
        is_cut
    }

    /// Keeps the points of the first layers alone.
    pub fn reduce(&mut self) {
        thread_local! {
            static SCRATCH: RefCell<Scratch> = RefCell::default();
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let depth = usize::from(self.depth);
            if !(self.thin(scratch) && scratch.peel(depth, true)) {
                scratch.take_all(&self.points);
                scratch.peel(depth, false);
            }
            self.points.clear();
            let kept = scratch.points.iter().zip(&scratch.gone);
            self.points.extend(kept.filter(|(_, gone)| **gone).map(|(point, _)| *point));
            self.reduced = self.points.len();
        });
    }

    /// Leaves out points between two margins that lie above enough points of both. Whether that was worth it; whether it was right is found out
    /// while the layers are peeled.
    fn thin(&self, scratch: &mut Scratch) -> bool {
        let (points, left) = (&self.points, self.reduced + MARGIN);
        let (Some(&first), Some(&last)) = (points.first(), points.last()) else { return false };
        if points.len() < left + 2 * MARGIN || last.x <= first.x {
            return false;
        }
        let right = points.len() - MARGIN;
        let slope = (last.y - first.y) / (last.x - first.x);
        let phase = |point: &Point| point.y.wrapping_sub(slope.wrapping_mul(point.x.wrapping_sub(first.x)));
        let mut phases = [0; MARGIN];
        let mut lowest = |margin: &[Point]| {
            phases.iter_mut().zip(margin).for_each(|(value, point)| *value = phase(point));
            *phases.select_nth_unstable(ANCHORS - 1).1
        };
        let limit = lowest(&points[left - MARGIN..left]).max(lowest(&points[right..]));
        scratch.points.clear();
        scratch.points.extend_from_slice(&points[..left]);
        scratch.points.extend(points[left..right].iter().filter(|point| phase(point) < limit));
        scratch.begin = left;
        scratch.end = scratch.points.len();
        scratch.points.extend_from_slice(&points[right..]);
        scratch.is_anchor.clear();
        scratch.is_anchor.extend(scratch.points.iter().map(|point| phase(point) <= limit));
        scratch.gone.clear();
        scratch.gone.resize(scratch.points.len(), false);
        true
    }
}

/// What reducing works with, kept so that nothing is allocated for it.
#[derive(Default)]
struct Scratch {
    points: Vec<Point>,
    /// Whether a layer has taken it.
    gone: Vec<bool>,
    /// Where something was left out between `begin` and `end`: whether a point lies below all of that.
    is_anchor: Vec<bool>,
    begin: usize,
    end: usize,
    stack: Vec<u32>,
}

impl Scratch {
    fn take_all(&mut self, points: &[Point]) {
        self.points.clear();
        self.points.extend_from_slice(points);
        self.gone.clear();
        self.gone.resize(points.len(), false);
    }

    /// Marks the first `depth` layers. Whether none of them can have had a point that was left out: a line between an anchor on the left and one on the
    /// right passes below all of them.
    fn peel(&mut self, depth: usize, is_thinned: bool) -> bool {
        for layer in 0..depth {
            if is_thinned && !(self.has_anchor(0, self.begin) && self.has_anchor(self.end, self.points.len())) {
                return false;
            }
            self.stack.clear();
            for (index, &point) in self.points.iter().enumerate() {
                if self.gone[index] {
                    continue;
                }
                while let [.., before, last] = self.stack[..] {
                    if hull::turns_up(self.points[before as usize], self.points[last as usize], point) {
                        break;
                    }
                    self.stack.pop();
                }
                self.stack.push(index as u32);
            }
            if self.stack.is_empty() {
                return layer > 0 || !is_thinned;
            }
            for &index in &self.stack {
                self.gone[index as usize] = true;
            }
        }
        true
    }

    fn has_anchor(&self, from: usize, until: usize) -> bool {
        (from..until).any(|index| self.is_anchor[index] && !self.gone[index])
    }
}
