//! Response times: the greatest and the mean.

use punctual_model::{Duration, Response};

/// The response times of a stream of jobs, in constant memory. Pieces merge exactly.
#[derive(Clone, Debug, Default)]
pub struct ResponseSummary {
    greatest: Duration,
    sum: u128,
    count: u64,
}

impl ResponseSummary {
    /// A summary of no jobs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job's response time.
    #[inline]
    pub fn push(&mut self, response: Duration) {
        self.greatest = self.greatest.max(response);
        self.sum += u128::from(response.ns());
        self.count += 1;
    }

    /// Adds the jobs of another piece.
    pub fn merge(&mut self, other: &ResponseSummary) {
        self.greatest = self.greatest.max(other.greatest);
        self.sum += other.sum;
        self.count += other.count;
    }

    /// The model; `None` without a job.
    pub fn response(&self) -> Option<Response> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Response { max_ns: self.greatest, mean_ns: u64::try_from(mean).ok().map(Duration::from_ns) })
    }
}
