//! The formats in which metrics are served: OpenMetrics 1.0, and Prometheus' older text format 0.0.4 for
//! readers that ask for plain text. Not for what is measured.

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    Plain,
}

impl Format {
    /// Plain text if the values of a request's `Accept` headers prefer it, else OpenMetrics.
    pub(super) fn accepted(accept: &str) -> Format {
        let plain = quality(accept, "text", "plain");
        let open_metrics = quality(accept, "application", "openmetrics-text");
        if plain > open_metrics { Format::Plain } else { Format::OpenMetrics }
    }

    pub(super) fn content(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// A text of OpenMetrics in this format.
    pub(super) fn write(self, open_metrics: String) -> String {
        match self {
            Format::OpenMetrics => open_metrics,
            Format::Plain => plain(&open_metrics),
        }
    }
}

/// How much a media type is wanted, from 0 to 1: by the most specific range that has it. (RFC 9110, 12.5.1)
fn quality(accept: &str, kind: &str, subtype: &str) -> f32 {
    let ranges = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
        let of = parts.next()?;
        let specific = [format!("{kind}/{subtype}"), format!("{kind}/*"), "*/*".into()];
        let place = specific.iter().position(|known| *known == of)?;
        let given = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
        Some((place, given.unwrap_or(1.0)))
    });
    ranges.min_by_key(|(place, _)| *place).map_or(0.0, |(_, quality)| quality)
}

/// Text format 0.0.4 names a counter as its sample (`_total`). It has no units, no kind for infos and no end.
fn plain(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                other => ("", other),
            };
            text += &format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_format_is_chosen() {
        for (accept, expected) in [
            ("", Format::OpenMetrics),
            ("*/*", Format::OpenMetrics),
            ("text/html", Format::OpenMetrics),
            ("text/plain", Format::Plain),
            ("Text/Plain; version=0.0.4", Format::Plain),
            ("text/plain, */*;q=0.1", Format::Plain),
            ("text/plain;q=0.2, */*", Format::OpenMetrics),
            // Prometheus 2.53.
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;\
                 version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                Format::OpenMetrics,
            ),
        ] {
            assert_eq!(Format::accepted(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn plain_text_has_nothing_of_openmetrics() {
        let open_metrics = "\
# HELP a_jobs Jobs.
# TYPE a_jobs counter
a_jobs_total{task=\"# x\"} 3
# HELP a_time_seconds Time.
# TYPE a_time_seconds gauge
# UNIT a_time_seconds seconds
a_time_seconds 1.5
# HELP a_build Version.
# TYPE a_build info
a_build_info{version=\"1\"} 1
# EOF
";
        let expected = "\
# HELP a_jobs_total Jobs.
# TYPE a_jobs_total counter
a_jobs_total{task=\"# x\"} 3
# HELP a_time_seconds Time.
# TYPE a_time_seconds gauge
a_time_seconds 1.5
# HELP a_build_info Version.
# TYPE a_build_info gauge
a_build_info{version=\"1\"} 1
";
        assert_eq!(plain(open_metrics), expected);
    }
}
