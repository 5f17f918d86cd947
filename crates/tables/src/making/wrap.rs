//! From how many slots each job gets in an interval to who runs when.
//!
//! Interchangeable processors: McNaughton's wrap-around rule (1959). Where jobs may use some processors only:
//! the preemptive open shop (Gonzalez and Sahni 1976), which needs no more slots than its longest row or
//! column.

use punctual_model::TableRun;

/// A job, and the slots that it gets.
pub(super) type Amount = (usize, u64);

/// Slots of jobs on processors that all of them may use, in an interval of `length` slots from `from` on.
/// No job has more than `length`, nor all together more than fit.
pub(super) fn wrapped(
    amounts: &[Amount],
    processors: &[u32],
    from: u64,
    length: u64,
    runs: &mut Vec<TableRun>,
) {
    filled(amounts, processors, length, |job, processor, start, end| {
        runs.push(TableRun { processor, from: from + start, to: from + end, job });
    });
}

/// Fills one processor after the other; the rest of a job goes to the beginning of the next.
fn filled(amounts: &[Amount], processors: &[u32], length: u64, mut place: impl FnMut(usize, u32, u64, u64)) {
    let mut processors = processors.iter();
    let (mut processor, mut used) = (processors.next(), 0);
    for &(job, amount) in amounts {
        let mut left = amount;
        while let (Some(&number), true) = (processor, left > 0) {
            let slots = left.min(length - used);
            if slots > 0 {
                place(job, number, used, used + slots);
            }
            left -= slots;
            used += slots;
            if used == length {
                (processor, used) = (processors.next(), 0);
            }
        }
    }
}

/// Classes of interchangeable processors, with the slots that jobs get on each, in an interval.
pub(super) fn open_shop(classes: &[(&[u32], Vec<Amount>)], from: u64, length: u64, runs: &mut Vec<TableRun>) {
    let processors: Vec<u32> = classes.iter().flat_map(|(numbers, _)| numbers.iter().copied()).collect();
    let mut jobs: Vec<usize> =
        classes.iter().flat_map(|(_, amounts)| amounts.iter().map(|&(job, _)| job)).collect();
    jobs.sort_unstable();
    jobs.dedup();
    let place = |all: &[usize], job: usize| all.binary_search(&job).unwrap_or_default();
    let mut shop = Shop::new(jobs.len(), processors.len());
    for (numbers, amounts) in classes {
        filled(amounts, numbers, length, |job, processor, start, end| {
            let column = processors.iter().position(|&number| number == processor).unwrap_or_default();
            shop.add(place(&jobs, job), column, end - start);
        });
    }
    shop.pad(length);
    let mut now = 0;
    while now < length {
        let slots = shop.step(length - now);
        for (row, &job) in jobs.iter().enumerate() {
            if let Some(&processor) = processors.get(shop.matched[row].unwrap_or(usize::MAX)) {
                runs.push(TableRun { processor, from: from + now, to: from + now + slots, job });
            }
        }
        shop.take(slots);
        now += slots;
    }
}

/// Jobs by processors, made square so that every row and column has the length of the interval: each
/// decomposition into perfect matchings (Birkhoff) is then a schedule.
struct Shop {
    jobs: usize,
    machines: usize,
    left: Vec<Vec<u64>>,
    /// The column of each row.
    matched: Vec<Option<usize>>,
}

impl Shop {
    fn new(jobs: usize, machines: usize) -> Self {
        let size = jobs + machines;
        Self { jobs, machines, left: vec![vec![0; size]; size], matched: vec![None; size] }
    }

    fn add(&mut self, job: usize, machine: usize, slots: u64) {
        self.left[job][machine] += slots;
        self.left[self.jobs + machine][self.machines + job] += slots;
    }

    /// Idle slots: of jobs, and of machines.
    fn pad(&mut self, length: u64) {
        for job in 0..self.jobs {
            let busy: u64 = self.left[job].iter().sum();
            self.left[job][self.machines + job] = length - busy;
        }
        for machine in 0..self.machines {
            let busy: u64 = self.left[self.jobs + machine].iter().sum();
            self.left[self.jobs + machine][machine] = length - busy;
        }
    }

    /// Matches every row, and returns for how many slots that can stay.
    fn step(&mut self, most: u64) -> u64 {
        for row in 0..self.matched.len() {
            if self.matched[row].is_none() {
                let mut seen = vec![false; self.matched.len()];
                self.give(row, &mut seen);
            }
        }
        let slots =
            self.matched.iter().enumerate().filter_map(|(row, column)| Some(self.left[row][(*column)?]));
        slots.min().unwrap_or(most).clamp(1, most)
    }

    fn take(&mut self, slots: u64) {
        for row in 0..self.matched.len() {
            let Some(column) = self.matched[row] else { continue };
            self.left[row][column] = self.left[row][column].saturating_sub(slots);
            if self.left[row][column] == 0 {
                self.matched[row] = None;
            }
        }
    }

    /// An augmenting path from a row.
    fn give(&mut self, row: usize, seen: &mut [bool]) -> bool {
        for column in 0..self.matched.len() {
            if self.left[row][column] == 0 || std::mem::replace(&mut seen[column], true) {
                continue;
            }
            let owner = self.matched.iter().position(|&it| it == Some(column));
            if owner.is_none_or(|owner| self.give(owner, seen)) {
                self.matched[row] = Some(column);
                return true;
            }
        }
        false
    }
}
