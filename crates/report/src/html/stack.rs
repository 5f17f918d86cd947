//! Bars that are stacked: what a time is made of.

use super::scale::{Scale, percent};
use maud::{Markup, html};
use punctual_model::Duration;

pub(super) const BAR_HEIGHT: u32 = 18;

/// A part of a bar.
pub(super) struct Drawable {
    pub class: &'static str,
    pub name: String,
    pub duration: Duration,
}

/// One after the other.
pub(super) fn drawn_parts(parts: &[Drawable], scale: &Scale) -> Markup {
    let mut until = Duration::ZERO;
    html! {
        @for Drawable { class, name, duration } in parts {
            @let from = scale.percent(until);
            @let to = { until += *duration; scale.percent(until) };
            rect.cause.(class) x=(percent(from)) y="3" width=(percent(to - from)) height=(BAR_HEIGHT) {
                title { (name) ": " (duration) }
            }
        }
    }
}

/// What a bar is made of, in words below it.
pub(super) fn named_parts(parts: &[Drawable]) -> Markup {
    html! {
        ul.parts {
            @for Drawable { class, name, duration } in parts {
                li {
                    svg.sample width="14" height="14" aria-hidden="true" {
                        rect.cause.(class) x="1" y="1" width="12" height="12" {}
                    }
                    bdi { (name) } " " (duration)
                }
            }
        }
    }
}
