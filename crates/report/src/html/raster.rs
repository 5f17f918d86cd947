//! The points of a raster: as many as a page can show, and always the extremes.
//!
//! Jobs in a row share a bucket of 2^k; when there are too many buckets, two and two become one. What a
//! bucket keeps does not depend on the order of jobs, so that the same jobs always make the same picture.

/// One job as a point, or as a bar where it was not seen exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// Which release of its stream, from 0.
    pub(crate) number: u64,
    /// When, in nanoseconds of the observation's clock.
    pub(crate) at_ns: u64,
    /// The least that the value can be, in nanoseconds.
    pub(crate) low_ns: i64,
    /// The most.
    pub(crate) high_ns: i64,
}

/// Of jobs in a row, the one that reaches lowest and the one that reaches highest.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    low: Point,
    high: Point,
}

impl Bucket {
    fn add(&mut self, low: Point, high: Point) {
        if (low.low_ns, low.number) < (self.low.low_ns, self.low.number) {
            self.low = low;
        }
        // Of equals, the first: compare with the number turned round.
        if (high.high_ns, !high.number) > (self.high.high_ns, !self.high.number) {
            self.high = high;
        }
    }
}

/// Points of one stream, at most twice as many as it has buckets.
#[derive(Clone, Debug)]
pub(crate) struct Raster {
    most_buckets: usize,
    /// The first job that came is in bucket 0: a stretch of a long recording has the resolution of a short
    /// one.
    first: Option<u64>,
    /// A bucket is of 2^shift jobs.
    shift: u32,
    buckets: Vec<Option<Bucket>>,
}

impl Raster {
    pub(crate) fn new(most_buckets: usize) -> Self {
        Raster { most_buckets: most_buckets.max(2), first: None, shift: 0, buckets: Vec::new() }
    }

    /// Adds a job. O(1), amortised.
    pub(crate) fn push(&mut self, point: Point) {
        let first = *self.first.get_or_insert(point.number);
        let position = point.number.saturating_sub(first);
        while position >> self.shift >= self.most_buckets as u64 {
            self.halve();
        }
        let index = (position >> self.shift) as usize;
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, None);
        }
        add(&mut self.buckets[index], Bucket { low: point, high: point });
    }

    fn halve(&mut self) {
        let pairs = self.buckets.len().div_ceil(2);
        for index in 0..pairs {
            let mut joined = self.buckets[2 * index];
            if let Some(Some(second)) = self.buckets.get(2 * index + 1) {
                add(&mut joined, *second);
            }
            self.buckets[index] = joined;
        }
        self.buckets.truncate(pairs);
        self.shift += 1;
    }

    /// How many jobs in a row share their points; 2 and less leave none out.
    pub(crate) fn jobs_per_bucket(&self) -> u64 {
        1 << self.shift
    }

    /// The points that are left, in the order of jobs.
    pub(crate) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for bucket in self.buckets.iter().flatten() {
            let (first, last) = if bucket.low.number <= bucket.high.number {
                (bucket.low, bucket.high)
            } else {
                (bucket.high, bucket.low)
            };
            points.push(first);
            if last.number != first.number {
                points.push(last);
            }
        }
        points
    }
}

fn add(bucket: &mut Option<Bucket>, other: Bucket) {
    match bucket {
        Some(bucket) => bucket.add(other.low, other.high),
        None => *bucket = Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(values: &[(i64, u16)]) -> Vec<Point> {
        let point = |(number, &(low_ns, width)): (usize, &(i64, u16))| Point {
            number: number as u64,
            at_ns: number as u64 * 1_000,
            low_ns,
            high_ns: low_ns + i64::from(width),
        };
        values.iter().enumerate().map(point).collect()
    }

    fn raster(most_buckets: usize, points: &[Point]) -> Raster {
        let mut raster = Raster::new(most_buckets);
        points.iter().for_each(|point| raster.push(*point));
        raster
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn extremes_of_every_bucket_are_kept(values in prop::collection::vec((-50_i64..50, 0_u16..20),
            1..400), buckets in 1_usize..40) {
            let all = points(&values);
            let raster = raster(buckets, &all);
            let kept = raster.points();
            prop_assert!(kept.len() <= 2 * buckets.max(2));
            prop_assert!(kept.is_sorted_by_key(|point| point.number));
            for jobs in all.chunks(raster.jobs_per_bucket() as usize) {
                let (first, last) = (jobs[0].number, jobs[jobs.len() - 1].number);
                let shown: Vec<&Point> = kept.iter().filter(|point| (first..=last).contains(&point.number))
                    .collect();
                let low = |points: &mut dyn Iterator<Item = &Point>| points.map(|point| point.low_ns).min();
                let high = |points: &mut dyn Iterator<Item = &Point>| points.map(|point| point.high_ns).max();
                prop_assert_eq!(low(&mut shown.iter().copied()), low(&mut jobs.iter()));
                prop_assert_eq!(high(&mut shown.iter().copied()), high(&mut jobs.iter()));
                prop_assert!(shown.iter().all(|point| jobs.contains(point)));
            }
        }

        #[test]
        fn order_within_the_recording_does_not_matter(values in prop::collection::vec((-9_i64..9, 0_u16..3),
            2..200), buckets in 1_usize..20) {
            let all = points(&values);
            let mut other_order = all.clone();
            other_order[1..].reverse();
            prop_assert_eq!(raster(buckets, &all).points(), raster(buckets, &other_order).points());
        }
    }

    #[test]
    fn few_jobs_are_all_shown() {
        let all = points(&[(5, 0), (3, 2), (8, 0), (4, 0)]);
        assert_eq!(raster(2, &all).points(), all);
        assert_eq!(raster(4, &all).jobs_per_bucket(), 1);
    }

    #[test]
    fn a_distant_value_costs_no_memory() {
        let far = Point { number: u64::MAX, at_ns: 9, low_ns: 0, high_ns: 0 };
        let raster = raster(4, &[Point { number: 0, ..far }, far]);
        assert_eq!(raster.points().len(), 2);
        assert!(raster.buckets.len() <= 4);
    }
}
