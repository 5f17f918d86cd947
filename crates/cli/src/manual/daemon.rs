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
        (
            config::DEFAULT_PATH,
            "The configuration: TOML. The one that is installed tells every key and its default.",
        ),
        (
            rules::DEFAULT_PATH,
            "The rules that the installed configuration names. Lines of domain, plugin, property and value.",
        ),
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

/// The pages of the two files that administrators write: the files themselves, as they are installed, whose
/// comments tell everything.
pub fn files() -> io::Result<[(&'static str, Vec<u8>); 2]> {
    let said = "The installed file, whose comments tell every key and its default. punctuald --check-config says what is wrong and where.";
    let config = file(
        "PUNCTUALD.TOML",
        "punctuald.toml",
        "configuration of punctuald",
        config::DEFAULT_PATH,
        said,
        config::DEFAULT_TEXT,
    )?;
    let said = "The installed file, whose comments tell its form. punctual rules check and punctual rules explain say what rules come to.";
    let rules = file(
        "PUNCTUAL-RULES.CONF",
        "punctual-rules.conf",
        "who may have what of punctuald",
        rules::DEFAULT_PATH,
        said,
        rules::DEFAULT_TEXT,
    )?;
    Ok([("punctuald.toml.5", config), ("punctual-rules.conf.5", rules)])
}

fn file(title: &str, name: &str, about: &str, path: &str, said: &str, text: &str) -> io::Result<Vec<u8>> {
    let mut page = Roff::new();
    page.control("TH", [title, "5", "", concat!("punctual ", env!("CARGO_PKG_VERSION")), "Punctual"]);
    page.control("SH", ["NAME"]).text([roman(format!("{name} - {about}"))]);
    page.control("SH", ["SYNOPSIS"]).text([italic(path)]);
    page.control("SH", ["DESCRIPTION"]).text([roman(said)]);
    page.control("PP", []).control("nf", []);
    for line in text.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
    page.control("SH", ["SEE ALSO"]).text([
        bold("punctuald"),
        roman("(8), "),
        bold("punctual-rules"),
        roman("(1), "),
        italic("docs/daemon.md"),
    ]);
    let mut bytes = Vec::new();
    page.to_writer(&mut bytes)?;
    Ok(bytes)
}

const SIGNALS: [(&str, &str); 2] = [
    (
        "SIGHUP",
        "Reads configuration and rules again: all of both, or, if something is wrong with them, nothing. What was admitted stays.",
    ),
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
    fn the_files_are_shown_as_they_are_installed() {
        for (name, page) in super::files().expect("pages") {
            let page = String::from_utf8(page).expect("text");
            assert!(
                page.contains(".nf")
                    && page.contains(if name.contains("toml") { "[[plugin]]" } else { "ignore_adm_test" }),
                "{page}"
            );
        }
    }

    #[test]
    fn the_page_tells_options_files_and_codes() {
        let page = String::from_utf8(super::page().expect("a page")).expect("text");
        for part in [
            ".TH PUNCTUALD 8",
            "check\\-config",
            ".SH SIGNALS",
            "/etc/punctual/rules.conf",
            ".SH \"EXIT STATUS\"",
            "varlinkctl",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}
