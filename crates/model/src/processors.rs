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
    }
}
