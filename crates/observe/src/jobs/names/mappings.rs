//! The list of a process's mappings, as `/proc/PID/maps` has it: which file an address belongs to.

/// Consecutive addresses with one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    pub start: u64,
    pub end: u64,
    /// Of the start, in the file.
    pub offset: u64,
    /// 0 if there is no file.
    pub inode: u64,
    pub path: &'a str,
}

/// The mappings of a process, by address.
pub struct Mappings<'a>(Vec<Mapping<'a>>);

/// Where an address is.
pub struct Place<'a> {
    /// The mapping of a file. The address is in it, or in memory without a file right behind it.
    pub mapping: Mapping<'a>,
    /// The file's name, without folders.
    pub module: &'a str,
    /// The mappings of the same file up to that one, the nearest first.
    before: Vec<Mapping<'a>>,
}

impl<'a> Mappings<'a> {
    /// Lines that are not as expected are left out.
    pub fn parse(text: &'a str) -> Mappings<'a> {
        Mappings(text.lines().filter_map(Mapping::parse).collect())
    }

    /// Where an address is, if there is a file; only the file tells whether its program has the address.
    /// `None` also if the process has mapped two files of one name: then the name would be that of both.
    pub fn place(&self, address: u64) -> Option<Place<'a>> {
        let mappings = &self.0;
        let mut index = mappings.partition_point(|mapping| mapping.end <= address);
        if mappings.get(index)?.start > address {
            return None;
        }
        // What a program's file does not fill of its data has no file, and may be joined with the heap.
        while mappings[index].inode == 0 {
            let before = index.checked_sub(1)?;
            if !mappings[index].may_be_data() || mappings[before].end != mappings[index].start {
                return None;
            }
            index = before;
        }
        let mapping = mappings[index];
        let module = mapping.module();
        let is_other = |other: &&Mapping<'_>| other.inode != 0 && other.inode != mapping.inode;
        if mappings.iter().filter(is_other).any(|other| other.module() == module) {
            return None;
        }
        let is_same = |other: &&Mapping<'_>| (other.inode, other.path) == (mapping.inode, mapping.path);
        let before = mappings[..=index].iter().rev().filter(is_same).copied().collect();
        Some(Place { mapping, module, before })
    }
}

impl<'a> Mapping<'a> {
    /// `55d0c0a00000-55d0c0a01000 rw-p 00003000 fe:00 1234    /usr/bin/robot`
    fn parse(line: &'a str) -> Option<Mapping<'a>> {
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let (_access, offset, _device, inode) =
            (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        Some(Mapping {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            offset: hexadecimal(offset)?,
            inode: inode.parse().ok()?,
            path: fields.next().unwrap_or_default().trim_start(),
        })
    }

    /// Whether it can be the part of a program's data that has no file.
    fn may_be_data(&self) -> bool {
        self.path.is_empty() || self.path == "[heap]" || self.path.starts_with("[anon:")
    }

    fn module(&self) -> &'a str {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(self.path);
        path.rsplit('/').next().unwrap_or(path)
    }
}

impl Place<'_> {
    /// An address at which this offset of the file is mapped, and that offset as far as the mapping says it:
    /// the start of the nearest mapping that has it.
    pub fn first(&self, offset: u64) -> Option<(u64, u64)> {
        let has = |it: &&Mapping<'_>| it.offset <= offset && offset - it.offset < it.end - it.start;
        self.before.iter().find(has).map(|mapping| (mapping.start, mapping.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0a00000-55d0c0a01000 r--p 00000000 fe:00 1234                       /opt/my robot/robot
55d0c0a01000-55d0c0a02000 r-xp 00001000 fe:00 1234                       /opt/my robot/robot
55d0c0a03000-55d0c0a04000 rw-p 00002000 fe:00 1234                       /opt/my robot/robot
55d0c0a04000-55d0c0a08000 rw-p 00000000 00:00 0
55d0c0a09000-55d0c0a10000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 r--p 00000000 fe:00 99                         /usr/lib/libc.so.6 (deleted)
7f0000001000-7f0000002000 rw-p 00001000 fe:00 99                         /usr/lib/libc.so.6 (deleted)
7f0000100000-7f0000101000 rw-p 00000000 fe:00 7                          /a/twin.so
7f0000200000-7f0000201000 rw-p 00000000 fe:00 8                          /b/twin.so
7ffe00000000-7ffe00001000 rw-p 00000000 00:00 0                          [stack]
";

    fn module(address: u64) -> Option<String> {
        Mappings::parse(MAPS).place(address).map(|place| place.module.to_owned())
    }

    #[test]
    fn addresses_belong_to_files() {
        let robot = || Some("robot".to_owned());
        assert_eq!(module(0x55d0_c0a0_0000), robot());
        assert_eq!(module(0x55d0_c0a0_3fff), robot());
        assert_eq!(module(0x55d0_c0a0_4000), robot(), "behind the file");
        assert_eq!(module(0x7f00_0000_1008), Some("libc.so.6".to_owned()));
        for (address, what) in [
            (0x55d0_c09f_ffff, "before the first"),
            (0x55d0_c0a0_2000, "between two"),
            (0x55d0_c0a0_9000, "the heap"),
            (0x7f00_0010_0000, "one of two files with one name"),
            (0x7ffe_0000_0000, "the stack"),
            (u64::MAX, "beyond the last"),
        ] {
            assert_eq!(module(address), None, "{what}");
        }
    }

    #[test]
    fn the_first_part_of_a_file_is_found() {
        let mappings = Mappings::parse(MAPS);
        let place = mappings.place(0x55d0_c0a0_5000).expect("a place");
        assert_eq!((place.mapping.start, place.mapping.end), (0x55d0_c0a0_3000, 0x55d0_c0a0_4000));
        assert_eq!(place.first(0), Some((0x55d0_c0a0_0000, 0)));
        assert_eq!(place.first(0x1234), Some((0x55d0_c0a0_1000, 0x1000)));
        assert_eq!(place.first(0x3000), None);
    }

    #[test]
    fn other_lines_are_left_out() {
        assert!(Mappings::parse("").place(0).is_none());
        assert!(Mappings::parse("1-2\nx-y rw-p 0 0 0 f\n\u{fffd}").place(1).is_none());
    }
}
