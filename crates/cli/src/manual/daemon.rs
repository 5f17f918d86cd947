//! The manual page of `punctuald`, `punctuald.8`, made from its parser too.

use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use punctual_daemon::config;
use punctual_daemon::daemon::Options;
use punctual_daemon::rules;
use std::io;

/// The page as roff.
pub fn page() -> io::Result<Vec<u8>> {
    let mut command = Options::command();
    command.build();
    let usage = super::synopsis(&command);
    let command = command.override_usage(usage);
    let source = concat!("punctual ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command).title("PUNCTUALD").section("8").source(source).manual("Punctual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    let mut text = Roff::new();
    text.control("SH", ["DESCRIPTION"]);
    for paragraph in [
        "Programs declare what they need in time: runtime, period, deadline, priority. punctuald says whether that can be met beside all that was promised \
         before, and schedules their threads so. Who may have what is decided by rules; what no rule allows is denied, but for root, who may do all.",
        "It listens on a Unix socket and speaks Varlink, so that varlinkctl(1) can ask it. punctual-ctl(1), libpunctual and ReTiF's interface on it are clients.",
        "Whatever it did to a thread is undone when its spec is released, when the thread is detached, when the process that declared it ends, and when punctuald stops. If \
         it is killed, the next start finds in the state folder what there is to keep and what to undo.",
    ] {
        text.control("PP", []).text([roman(paragraph)]);
    }
    text.to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    entries("SIGNALS", &SIGNALS).to_writer(&mut page)?;
    let files = [
        (config::DEFAULT_PATH, "The configuration: TOML. The one that is installed tells every key and its default."),
        (rules::DEFAULT_PATH, "The rules that the installed configuration names. Lines of domain, plugin, property and value."),
        (config::DEFAULT_SOCKET, "The socket."),
        ("/run/punctual", "The state folder: what outlives a crash."),
    ];
    entries("FILES", &files).to_writer(&mut page)?;
    entries("EXIT STATUS", &CODES).to_writer(&mut page)?;
    let mut end = Roff::new();
    end.control("SH", ["SEE ALSO"]);
    end.text([
        bold("punctual"),
        roman("(1), "),
        bold("punctual-rules"),
        roman("(1), "),
        bold("sched"),
        roman("(7), "),
        bold("varlinkctl"),
        roman("(1), "),
    ]);
    end.text([italic("docs/daemon.md")]);
    end.to_writer(&mut page)?;
    Ok(page)
}

const SIGNALS: [(&str, &str); 2] = [
    ("SIGHUP", "Reads configuration and rules again: all of both, or, if something is wrong with them, nothing. What was admitted stays."),
    ("SIGTERM, SIGINT", "Puts all threads back to how they were and ends."),
];

const CODES: [(&str, &str); 3] = [
    ("0", "It was told to end; with --check-config, nothing is wrong."),
    ("1", "It cannot run: the socket, the state folder or the kernel."),
    ("2", "The arguments, the configuration or the rules are wrong."),
];

fn entries(title: &str, entries: &[(&str, &str)]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for (name, meaning) in entries {
        section.control("TP", []).text([bold(*name)]).text([roman(*meaning)]);
    }
    section
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_tells_options_files_and_codes() {
        let page = String::from_utf8(super::page().expect("a page")).expect("text");
        for part in [".TH PUNCTUALD 8", "check\\-config", ".SH SIGNALS", "/etc/punctual/rules.conf", ".SH \"EXIT STATUS\"", "varlinkctl"] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}
