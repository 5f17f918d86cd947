//! How each section of a timing model is shown: one entry of a list, beside a module that shows it.
//!
//! Terminal, page and documents go through this list. What is compared has a list of its own, in
//! [`crate::compare`].

use crate::figures::{self, List};
use crate::html::drawn::{Drawn, Fact};
use crate::html::{
    causes as causes_page, flow as flow_page, latency as latency_page, threads as threads_page,
    time_table as time_table_page,
};
use crate::overview::Rows;
use crate::{Page, flow, latency, overview, time_table, why};
use maud::Markup;
use punctual_model::TimingModel;

/// How a section is shown. The functions are called only for models that have it.
pub(crate) struct View {
    /// Its name in the file.
    pub name: &'static str,
    /// On the page: where it begins, and what a link to there says.
    pub anchor: (&'static str, &'static str),
    /// For terminals.
    pub text: fn(&TimingModel, &Page, Rows) -> String,
    /// In the head of the page.
    pub facts: fn(&TimingModel) -> Vec<Fact>,
    /// Items of the page's list of contents.
    pub contents: fn(&Drawn<'_>) -> Markup,
    /// Its part of the page.
    pub page: fn(&Drawn<'_>) -> Markup,
    /// Its tables of figures, by title.
    pub figures: fn() -> Vec<List>,
}

/// All sections, in the order in which they are shown.
const SECTIONS: &[View] = &[
    View {
        name: "threads",
        anchor: ("tasks", "To the table of tasks"),
        text: |model, page, rows| {
            let head: String =
                overview::summary(model).lines().map(|line| crate::paragraph(line, page)).collect();
            head + "\n" + &overview::overview(model, page, rows)
        },
        facts: threads_page::facts,
        contents: threads_page::contents,
        page: threads_page::sections,
        figures: figures::of_threads,
    },
    View {
        name: "causes",
        anchor: ("late", "To the late jobs"),
        text: |model, page, _| model.causes.as_ref().map_or_else(String::new, |it| why::text(it, page)),
        facts: causes_page::facts,
        contents: causes_page::contents,
        page: causes_page::sections,
        figures: figures::of_causes,
    },
    View {
        name: "dataflow",
        anchor: ("dataflow", "To the dataflow program"),
        text: |model, page, _| flow::program(model, page),
        facts: flow_page::facts,
        contents: flow_page::contents,
        page: flow_page::sections,
        figures: figures::of_dataflow,
    },
    View {
        name: "latency",
        anchor: ("latency", "To the scheduling latency"),
        text: |model, page, _| {
            model.latency.as_ref().map_or_else(String::new, |it| latency::latency(it, page))
        },
        facts: |_| Vec::new(),
        contents: latency_page::contents,
        page: latency_page::sections,
        figures: figures::of_latency,
    },
    View {
        name: "table",
        anchor: ("time-table", "To the time-triggered schedule"),
        text: |model, page, _| {
            model.table.as_ref().map_or_else(String::new, |it| time_table::time_table(it, page))
        },
        facts: |_| Vec::new(),
        contents: time_table_page::contents,
        page: time_table_page::sections,
        figures: figures::of_time_tables,
    },
];

/// The sections that a model has.
pub(crate) fn shown(model: &TimingModel) -> impl Iterator<Item = &'static View> {
    let names = model.sections();
    SECTIONS.iter().filter(move |view| names.contains(&view.name))
}

/// The figures of every section and of the live view, as documents list them.
pub fn figures() -> Vec<List> {
    SECTIONS.iter().flat_map(|view| (view.figures)()).chain(figures::of_live()).collect()
}

/// Every section of a model, for terminals.
pub fn text(model: &TimingModel, page: &Page, rows: Rows) -> String {
    let parts = shown(model).map(|view| (view.text)(model, page, rows));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_of_the_file_is_shown() {
        let names: Vec<&str> = SECTIONS.iter().map(|view| view.name).collect();
        assert_eq!(names, TimingModel::SECTIONS);
    }
}
