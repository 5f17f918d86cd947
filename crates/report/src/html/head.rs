//! The head of every page: title, styles, content security policy, theme.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

/// The head of a page with these styles, which may run these scripts and nothing else. The scripts are to
/// stand in its body.
pub(crate) fn head(title: &str, styles: &[&str], scripts: &[&str]) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy(styles, scripts));
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="generator" content={ "punctual " (env!("CARGO_PKG_VERSION")) };
            title { (title) " · Punctual" }
            // Without one, a browser asks the server for it.
            link rel="icon" href="data:,";
            @for style in styles {
                style { (PreEscaped(style)) }
            }
        }
    }
}

/// Light and dark: goes first of all scripts of a page with [`theme`].
pub(crate) const THEME: &str = include_str!("assets/theme.js");

/// The button for light and dark; hidden without the script.
pub(crate) fn theme() -> Markup {
    html! { button #theme type="button" hidden { "Dark" } }
}

/// The content security policy: only the page's own styles and scripts, identified by their hashes.
fn policy(styles: &[&str], scripts: &[&str]) -> String {
    let hashes = |texts: &[&str]| -> String {
        let hash = |text: &&str| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
        texts.iter().map(hash).collect()
    };
    let scripts = if scripts.is_empty() { String::new() } else { format!(" script-src{};", hashes(scripts)) };
    format!(
        "default-src 'none';{scripts} style-src{}; img-src data:; base-uri 'none'; form-action 'none'",
        hashes(styles)
    )
}
