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
    let synopsis = super::synopsis(&command);
    let man = Man::new(command).title("PUNCTUALD").section("8").source(source).manual("Punctual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    super::ragged().to_writer(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis.to_writer(&mut page)?;
    let mut text = Roff::new();
    text.control("SH", ["DESCRIPTION"]);
    for paragraph in [
        "Programs declare their timing needs: runtime, period, deadline, priority. punctuald decides whether \
         they can be met together with everything it admitted before, and schedules the threads accordingly. \
         Rules limit what users may ask for; without a matching rule a request is denied. Root may do \
         everything.",
        "It listens on a Unix socket and speaks Varlink, so varlinkctl(1) can call it. punctual-ctl(1), \
         libpunctual and its implementation of ReTiF's interface are clients.",
        "The original scheduling of a thread is restored when its spec is released, the thread is detached, \
         the process that declared it ends, or punctuald stops. If punctuald is killed, the next start reads \
         from the state folder what to keep and what to undo.",
    ] {
        text.control("PP", []).text([roman(paragraph)]);
    }
    text.to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    entries("SIGNALS", &SIGNALS).to_writer(&mut page)?;
    let files = [
        (
            config::DEFAULT_PATH,
            "The configuration, in TOML. The installed file documents every key and its default.",
        ),
        (
            rules::DEFAULT_PATH,
            "The rules of the installed configuration: lines of domain, plugin, property and value.",
        ),
        (config::DEFAULT_SOCKET, "The socket."),
        ("/run/punctual", "The state folder, which survives a crash."),
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

/// The pages of the two files that administrators write: the installed files, whose comments document them.
pub fn files() -> io::Result<[(&'static str, Vec<u8>); 2]> {
    let about = "The installed file, whose comments document every key and its default. punctuald \
                 --check-config reports errors and their places.";
    let config = file(
        "PUNCTUALD.TOML",
        "punctuald.toml",
        "configuration of punctuald",
        config::DEFAULT_PATH,
        about,
        config::DEFAULT_TEXT,
    )?;
    let about = "The installed file, whose comments document its format. punctual rules check and punctual \
                 rules explain show the effect of rules.";
    let rules = file(
        "PUNCTUAL-RULES.CONF",
        "punctual-rules.conf",
        "access rules of punctuald",
        rules::DEFAULT_PATH,
        about,
        rules::DEFAULT_TEXT,
    )?;
    Ok([("punctuald.toml.5", config), ("punctual-rules.conf.5", rules)])
}

fn file(title: &str, name: &str, summary: &str, path: &str, about: &str, text: &str) -> io::Result<Vec<u8>> {
    let mut page = Roff::new();
    page.control("TH", [title, "5", "", concat!("punctual ", env!("CARGO_PKG_VERSION")), "Punctual"]);
    page.control("SH", ["NAME"]).text([roman(format!("{name} - {summary}"))]);
    page.control("SH", ["SYNOPSIS"]).text([italic(path)]);
    page.control("SH", ["DESCRIPTION"]).text([roman(about)]);
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
        "Reload configuration and rules. If either has an error, neither changes. Admitted specs stay.",
    ),
    ("SIGTERM, SIGINT", "Restore the original scheduling of all threads and end."),
];

const CODES: [(&str, &str); 3] = [
    ("0", "Ended by a signal; with --check-config, no errors found."),
    ("1", "Cannot run, because of the socket, the state folder or the kernel."),
    ("2", "Errors in the arguments, the configuration or the rules."),
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
    fn pages_show_the_installed_files() {
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
    fn the_page_has_options_files_and_exit_codes() {
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
