//! Jobs of a thread as slices. Jobs of one stream overlap if one is released before the previous one has
//! ended; slices of a track cannot. So a stream has as many tracks as it needs, with one name, which Perfetto
//! shows as rows of one track. Another row shows the windows of releases whose exact time is unknown.

use super::error::Error;
use super::packets::{Argument, Packets};
use super::proto::{BY_RANK, Track};
use punctual_model::{Instant, Job, Separator};
use std::collections::HashMap;
use std::io::Write;

/// Jobs of a stream that can be shown at the same time. Where more are waiting, they are shown from when
/// there is room.
const MAX_LANES: usize = 8;

/// The streams of a thread's task.
#[derive(Default)]
pub struct Streams {
    phase: u32,
    streams: HashMap<Separator, Stream>,
    /// The track above the streams that are not primary.
    others: Option<u64>,
}

/// One stream.
struct Stream {
    parent: u64,
    name: String,
    rank: Option<i32>,
    lanes: Vec<Lane>,
    windows: Option<Lane>,
}

/// A track, and from when it is free.
#[derive(Clone, Copy)]
struct Lane {
    track: u64,
    free: Instant,
}

/// A job that has ended.
pub struct Ended<'a> {
    pub thread: u64,
    pub phase: u32,
    pub separator: Separator,
    pub primary: bool,
    pub number: u64,
    pub job: &'a Job,
}

impl Streams {
    /// Shows a job.
    pub fn job<W: Write>(&mut self, ended: &Ended, packets: &mut Packets<W>) -> Result<(), Error> {
        if self.phase != ended.phase {
            // Another task has other streams; Perfetto shows tracks of one name as one.
            self.streams.clear();
            self.phase = ended.phase;
        }
        let key = ended.separator.key();
        if !self.streams.contains_key(&key) {
            let stream = self.stream(ended, packets)?;
            self.streams.insert(key, stream);
        }
        match self.streams.get_mut(&key) {
            Some(stream) => stream.job(ended, packets),
            None => Ok(()),
        }
    }

    fn stream<W: Write>(&mut self, ended: &Ended, packets: &mut Packets<W>) -> Result<Stream, Error> {
        let (parent, name, rank) = if ended.primary {
            (ended.thread, "jobs".to_owned(), Some(0))
        } else {
            (self.others(ended, packets)?, format!("jobs: {}", ended.separator.key()), None)
        };
        Ok(Stream { parent, name, rank, lanes: Vec::new(), windows: None })
    }

    fn others<W: Write>(&mut self, ended: &Ended, packets: &mut Packets<W>) -> Result<u64, Error> {
        if let Some(track) = self.others {
            return Ok(track);
        }
        let track = packets.new_track();
        let description =
            "Jobs at the other calls at which the thread waits. The same execution is in jobs of each.";
        packets.track(
            ended.job.end,
            Track {
                id: track,
                parent: Some(ended.thread),
                name: Some("other separators".into()),
                description: Some(description.into()),
                rank: Some(1),
                child_ordering: Some(BY_RANK),
                ..Track::default()
            },
        )?;
        self.others = Some(track);
        Ok(track)
    }
}

impl Stream {
    fn job<W: Write>(&mut self, ended: &Ended, packets: &mut Packets<W>) -> Result<(), Error> {
        let job = ended.job;
        let window = job.release.window;
        // By then it had been released for certain.
        let released = window.latest().min(job.end);
        let lane = self.lane(released, packets)?;
        let begin = released.max(lane.free);
        let mut arguments = arguments(ended);
        if begin > released {
            arguments.push(Argument::number("shown_late_ns", begin.since(released).ns()));
        }
        let end = job.end.max(begin);
        lane.free = end;
        packets.slice(lane.track, "job", format!("job {}", ended.number), (begin, end), arguments)?;
        if window.is_exact() || !ended.primary { Ok(()) } else { self.window(ended, packets) }
    }

    /// A lane that is free at `from`, or the one that is free first.
    fn lane<W: Write>(&mut self, from: Instant, packets: &mut Packets<W>) -> Result<&mut Lane, Error> {
        let free = self.lanes.iter().position(|lane| lane.free <= from);
        let place = match free {
            Some(place) => place,
            None if self.lanes.len() < MAX_LANES => {
                let track = self.track(from, packets)?;
                self.lanes.push(Lane { track, free: Instant::default() });
                self.lanes.len() - 1
            }
            None => {
                self.lanes.iter().enumerate().min_by_key(|(_, lane)| lane.free).map_or(0, |(place, _)| place)
            }
        };
        Ok(&mut self.lanes[place])
    }

    /// The window in which the job was released. Jobs are released in order, so the part before the end of
    /// the previous window is left to that one's slice.
    fn window<W: Write>(&mut self, ended: &Ended, packets: &mut Packets<W>) -> Result<(), Error> {
        let window = ended.job.release.window;
        let mut lane = match self.windows {
            Some(lane) => lane,
            None => Lane { track: self.track(window.earliest(), packets)?, free: Instant::default() },
        };
        let begin = window.earliest().max(lane.free);
        let end = window.latest().max(begin);
        lane.free = end;
        self.windows = Some(lane);
        let arguments = vec![
            Argument::number("release_earliest_ns", window.earliest().ns()),
            Argument::number("release_latest_ns", window.latest().ns()),
        ];
        packets.slice(
            lane.track,
            "release",
            format!("release of job {} in here", ended.number),
            (begin, end),
            arguments,
        )
    }

    fn track<W: Write>(&self, at: Instant, packets: &mut Packets<W>) -> Result<u64, Error> {
        let id = packets.new_track();
        packets.track(
            at,
            Track {
                id,
                parent: Some(self.parent),
                name: Some(self.name.clone()),
                rank: self.rank,
                ..Track::default()
            },
        )?;
        Ok(id)
    }
}

fn arguments(ended: &Ended) -> Vec<Argument> {
    let job = ended.job;
    let window = job.release.window;
    let mut arguments = vec![
        Argument::text("separator", ended.separator.to_string()),
        Argument::number("release_earliest_ns", window.earliest().ns()),
        Argument::number("release_latest_ns", window.latest().ns()),
        Argument::number("start_ns", job.start.ns()),
        Argument::number("cost_ns", job.cost.ns()),
        Argument::number("suspended_ns", job.suspended.ns()),
        Argument::number("response_ns", job.response().ns()),
    ];
    if let Some(arrival) = job.release.arrival {
        arguments.push(Argument::number("arrival_ns", arrival.ns()));
        let lateness = i128::from(window.latest().ns()) - i128::from(arrival.ns());
        arguments.push(Argument::signed(
            "lateness_ns",
            i64::try_from(lateness).unwrap_or(if lateness < 0 { i64::MIN } else { i64::MAX }),
        ));
    }
    arguments
}
