//! How the daemon is set up, and who its clients are.

use punctual_daemon::access::Who;
use punctual_daemon::config::{Config, Machine};
use punctual_daemon::registry::{Loaded, Setup};
use punctual_daemon::rules::{Names, Rules};
use punctual_linux::thread::pin_process;
use punctual_schedule::Limits;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;

/// Far from any user's number: of all threads of the machine, none is theirs.
pub const USERS: [u32; 2] = [4_000_000_000, 4_000_000_001];
pub const SPECS_PER_USER: usize = 6;

const QUOTAS: &str = "[quotas]\nspecs_per_user = 6\nspecs = 10\n";
const CONFIGURATIONS: [&str; 4] = [
    "[[plugin]]\nname = 'EDF'\nkind = 'EDF'\n[[plugin]]\nname = 'RM'\nkind = 'RM'\npriorities = [10, 20]\n\
     [[plugin]]\nname = 'FP'\nkind = 'FP'\npriorities = [1, 9]\n\
     [[plugin]]\nname = 'RR'\nkind = 'RR'\npriorities = [1, 9]\n",
    "[[plugin]]\nname = 'EDF'\nkind = 'EDF'\nadmission = 'utilization'\nutilization = 0.5\n\
     [[plugin]]\nname = 'RM'\nkind = 'RM'\nadmission = 'utilization'\n\
     [[plugin]]\nname = 'FP'\nkind = 'FP'\nadmission = 'utilization'\n",
    "[[plugin]]\nname = 'RR'\nkind = 'RR'\npriorities = [50, 51]\n\
     [[plugin]]\nname = 'RM'\nkind = 'RM'\npriorities = [50, 51]\nprocessors = [1]\n",
    "[[plugin]]\nname = 'RM'\nkind = 'RM'\n\
     [[plugin]]\nname = 'EDF'\nkind = 'EDF'\nprocessors = [0]\nutilization = 1.0\n\
     [[plugin]]\nname = 'second'\nkind = 'EDF'\nprocessors = [1]\nutilization = 0.01\n",
];
const RULES: [&str; 2] = [
    "- - max_priority 99\n- - ignore_adm_test true\n",
    "one - max_utilization 0.75\ntwo - max_runtime 20000\n- - min_period 100\n\
     @all EDF max_utilization 0.5\ntwo RM ignore_adm_test true\n",
];

struct Town;

impl Names for Town {
    fn user(&self, name: &str) -> Option<u32> {
        ["one", "two"].iter().position(|it| *it == name).map(|at| USERS[at])
    }

    fn group(&self, name: &str) -> Option<u32> {
        (name == "all").then_some(USERS[0])
    }
}

/// Two processors, whatever this machine has.
fn machine() -> Machine {
    Machine { processors: vec![0, 1], priorities: (1, 99), ..Machine::default() }
}

/// One of several, the same for the same number.
pub fn setup(number: u8) -> Setup {
    static READ: OnceLock<Vec<(Config, Rules)>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        let all = CONFIGURATIONS.iter().flat_map(|configuration| RULES.map(|rules| (*configuration, rules)));
        all.map(|(configuration, rules)| {
            let config = Config::parse(&format!("{QUOTAS}{configuration}"), Path::new("/c"), &machine())
                .expect("a configuration")
                .0;
            // Rules for plugins that are not in all of them.
            let rules = Rules::parse(rules, Path::new("/r"), None, &Town, &machine()).expect("rules").0;
            (config, rules)
        })
        .collect()
    });
    let (config, rules) = &read[usize::from(number) % read.len()];
    let plugins = config.plugins(Limits::default()).expect("plugins").into_iter().zip(&config.plugins);
    Setup {
        path: config.path.clone(),
        plugins: plugins
            .map(|(plugin, config)| Loaded { name: plugin.name().into(), plugin, config: config.clone() })
            .collect(),
        access: Box::new(rules.clone()),
        quotas: config.quotas,
        may_lift_limit: true,
        enforcement: Default::default(),
    }
}

/// Who connects: the first two are one process, the third is another user's.
pub fn who(client: usize) -> Who {
    Who { user: USERS[client / 2], group: USERS[0], groups: vec![] }
}

/// Their processes: this one and its parent, which are there as long as this one. A descriptor of its own
/// each time, since the daemon watches it until it is closed.
pub fn process(client: usize) -> (u32, OwnedFd) {
    let number = if client < 2 { std::process::id() } else { std::os::unix::process::parent_id() };
    (number, pin_process(number).expect("a process").0)
}
