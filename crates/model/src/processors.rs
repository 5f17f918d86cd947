//! Lists of processors as the kernel writes them: `0-1,4`.

/// Greater numbers are no processors.
const MOST: u32 = 1 << 16;

/// The processors of a list, ascending, each once; `None` if it is not one, or is empty.
pub fn processor_list(text: &str) -> Option<Vec<u32>> {
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|cpu| *cpu < MOST);
    let mut processors = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        processors.extend(first..=last);
        // However often a range is repeated.
        processors.sort_unstable();
        processors.dedup();
    }
    Some(processors)
}

/// Processors as such a list.
pub fn list_of_processors(mut processors: Vec<u32>) -> String {
    processors.sort_unstable();
    processors.dedup();
    let ranges = processors.chunk_by(|one, next| *next == one + 1);
    let range = |range: &[u32]| match range {
        [first, .., last] => format!("{first}-{last}"),
        _ => range.iter().map(u32::to_string).collect(),
    };
    ranges.map(range).collect::<Vec<_>>().join(",")
}

/// The processors of either list; nothing if one of them is none.
pub fn either_list_of_processors(one: &str, other: &str) -> String {
    match (processor_list(one), processor_list(other)) {
        (Some(one), Some(other)) => list_of_processors([one, other].concat()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_those_of_the_kernel() {
        assert_eq!(processor_list("0-1,4\n"), Some(vec![0, 1, 4]));
        assert_eq!(processor_list("3, 0-1, 1"), Some(vec![0, 1, 3]));
        for wrong in ["", "a", "2-1", "1-", "0,,1", "65536", "0-4294967295"] {
            assert_eq!(processor_list(wrong), None, "{wrong:?}");
        }
        assert_eq!(either_list_of_processors("0,2", "1,7"), "0-2,7");
        assert_eq!(either_list_of_processors("0,2", ""), "");
    }
}
