//! Programs: random ones, and the one of the paper.

use super::simulator::{Input, Keeps, Numbers, Policy, Program, Task, Timer};
use punctual_trace::flow::{self, About, Arming, Connection};
use std::collections::BTreeMap;

/// Any program: chains, joins, forks, feedback, timers, one to three executors.
pub fn random(numbers: &mut Numbers) -> Program {
    let (tasks, channels) = (2 + numbers.below(6) as usize, 2 + numbers.below(7) as usize);
    let (joins, feedback, overlaps) = (numbers.below(60), numbers.chance(30), numbers.below(100));
    let (queues, newest) = (numbers.below(100), numbers.below(40));
    let task = |index: usize, numbers: &mut Numbers| {
        // The first takes what comes from outside; without feedback, data go to tasks of higher number alone.
        let input = |numbers: &mut Numbers| {
            let channel = if index == 0 { 0 } else { 1 + numbers.below(channels as u64 - 1) as usize };
            let threshold = [1, 1, 1, 2, 3, 0][numbers.below(6) as usize];
            let keeps = match numbers.below(100) {
                kind if kind < queues => Keeps::Queue { optional: 1 + numbers.below(2) as u32 },
                kind if kind < queues + newest => Keeps::Newest,
                _ => Keeps::Since,
            };
            Input { channel, threshold, keeps }
        };
        let mut inputs = vec![Input { threshold: 1 + numbers.below(10) as u32 / 8, ..input(numbers) }];
        while numbers.chance(joins) && inputs.len() < 4 {
            let next = input(numbers);
            if inputs.iter().all(|input| input.channel != next.channel) {
                inputs.push(next);
            }
        }
        let mut outputs = Vec::new();
        for channel in 1..channels {
            if numbers.chance(30) {
                outputs.push((channel, if numbers.chance(70) { 100 } else { 20 + numbers.below(80) }));
            }
        }
        let shortest = numbers.below(40);
        // Where all inputs say how they count, instances do not overlap.
        let is_serial = inputs.iter().all(|input| input.keeps != Keeps::Since);
        Task {
            inputs,
            outputs,
            time: (shortest, shortest + numbers.below(80)),
            overlaps: numbers.chance(overlaps) && !is_serial,
        }
    };
    let mut tasks: Vec<Task> = (0..tasks).map(|index| task(index, numbers)).collect();
    if !feedback {
        // The channel's number is at least that of whoever pushes on it, and below that of whoever reads it.
        for (index, task) in tasks.iter_mut().enumerate() {
            task.outputs.retain(|(channel, _)| *channel > index);
            for input in task.inputs.iter_mut().filter(|input| input.channel > index) {
                input.channel = index.min(channels - 1);
            }
            task.inputs.sort_by_key(|input| input.channel);
            task.inputs.dedup_by_key(|input| input.channel);
            task.overlaps &= task.inputs.iter().any(|input| input.keeps == Keeps::Since);
            if task.inputs.iter().all(|input| input.threshold == 0) {
                task.inputs[0].threshold = 1;
            }
        }
    }
    let mut timers = vec![Timer { period: 60 + numbers.below(200), channel: Some(0), task: None }];
    while numbers.chance(40) && timers.len() < 4 {
        let by_itself = numbers.chance(40).then(|| numbers.below(tasks.len() as u64) as usize);
        let channel = by_itself.is_none().then(|| numbers.below(channels as u64) as usize);
        timers.push(Timer { period: 60 + numbers.below(300), channel, task: by_itself });
    }
    let policy = [Policy::Fifo, Policy::Lifo, Policy::Any][numbers.below(3) as usize];
    Program { channels, tasks, timers, executors: 1 + numbers.below(3) as usize, policy }
}

/// The optical navigation of the paper's Fig. 2: two cameras, crater and feature detection, navigation that
/// joins them, two consumers.
pub fn aton(executors: usize, policy: Policy) -> (Program, About) {
    let input = |channel| Input { channel, threshold: 1, keeps: Keeps::Since };
    let task = |inputs: &[usize], outputs: &[usize], time| Task {
        inputs: inputs.iter().map(|channel| input(*channel)).collect(),
        outputs: outputs.iter().map(|channel| (*channel, 100)).collect(),
        time,
        overlaps: false,
    };
    let tasks = vec![
        task(&[0], &[2], (200_000, 300_000)),
        task(&[1], &[3], (200_000, 300_000)),
        task(&[2], &[4], (2_000_000, 3_000_000)),
        task(&[3], &[5], (1_000_000, 4_000_000)),
        task(&[4, 5], &[6], (400_000, 500_000)),
        task(&[6], &[], (50_000, 90_000)),
        task(&[6], &[], (50_000, 70_000)),
    ];
    let timer = |channel, period| Timer { period, channel: Some(channel), task: None };
    let program = Program {
        channels: 7,
        timers: vec![timer(0, 10_000_000), timer(1, 10_000_000)],
        tasks,
        executors,
        policy,
    };
    let names = |names: &[&str]| {
        names.iter().enumerate().map(|(number, name)| (number as u16, (*name).to_owned())).collect()
    };
    let about = About {
        tasks: names(&["cam1", "cam2", "craT", "feaT", "navi", "ter1", "ter2"]),
        channels: names(&["tik1", "tik2", "img1", "img2", "crat", "feat", "pose"]),
        program: Some("aton".into()),
        policy: Some(format!("{policy:?}").to_lowercase()),
        executors: Some(executors as u32),
        ..about(&program)
    };
    (program, about)
}

/// What a trace of it would say: names and connections.
pub fn about(program: &Program) -> About {
    let mut inputs: Vec<flow::Input> = Vec::new();
    for (number, task) in program.tasks.iter().enumerate() {
        for input in &task.inputs {
            let connection = Connection { channel: input.channel as u16, task: number as u16 };
            let optional = input.threshold == 0;
            let arming = match input.keeps {
                Keeps::Since => None,
                Keeps::Queue { .. } => {
                    Some(Arming { threshold: input.takes() as u32, optional, ..Arming::default() })
                }
                Keeps::Newest => Some(Arming {
                    threshold: input.takes().max(1) as u32,
                    synchronised: false,
                    optional,
                    ..Arming::default()
                }),
            };
            inputs.push(flow::Input { connection, arming });
        }
    }
    inputs.sort_unstable();
    inputs.dedup();
    let tasks: BTreeMap<u16, String> =
        (0..program.tasks.len()).map(|task| (task as u16, format!("t{task}"))).collect();
    About { inputs, has_all_inputs: true, tasks, ..About::default() }
}
