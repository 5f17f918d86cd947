//! Which of the descriptors that a call waits for were ready when it returned.

/// What the kernel showed of the descriptors that `epoll_wait` or `poll` returned, and of its timeout.
///
/// Keys tell sources of releases apart within one job stream; they mean nothing beyond that. Small numbers
/// are mostly descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ready {
    keys: [u32; Ready::MOST],
    count: u8,
}

impl Ready {
    /// Most keys. What was ready is not known where there were more.
    pub const MOST: usize = 4;

    /// The key of a timeout.
    pub const TIMEOUT: u32 = u32::MAX;

    /// These were ready, in any order. `None` if there are none, or too many.
    pub fn new(ready: &[u32]) -> Option<Ready> {
        let mut keys = [0; Ready::MOST];
        let mut count = 0;
        for key in ready {
            // Ascending, and each once.
            let place = keys[..count].partition_point(|other| other < key);
            if place < count && keys[place] == *key {
                continue;
            }
            if count == Ready::MOST {
                return None;
            }
            keys[place..=count].rotate_right(1);
            keys[place] = *key;
            count += 1;
        }
        (count > 0).then_some(Ready { keys, count: count as u8 })
    }

    /// The keys of what was ready; empty if that is not known.
    pub fn keys(&self) -> &[u32] {
        self.keys.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        self.count > 0
    }
}
