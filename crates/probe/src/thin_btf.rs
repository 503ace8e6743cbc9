//! The kernel's type information without the types that our programs do not name.
//!
//! A kernel describes 150,000 types in 5 MB, and the loader keeps each as a value of its own and
//! compares names with all of them: 90 ms of CPU time and 80 MB at the start of every recording,
//! for three dozen structs. Ids are places in the list and the kernel wants its own, so the list
//! keeps its length; what nobody asks for loses its name and its members.
//!
//! The format: Documentation/bpf/btf.rst.

use std::collections::{HashMap, HashSet};

use object::{Object, ObjectSection};

const HEADER_BYTES: usize = 24;
const MAGIC: u16 = 0xeb9f;
const TYPE_BYTES: usize = 12;

mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const FORWARD: u32 = 7;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNCTION: u32 = 12;
    pub(super) const PROTOTYPE: u32 = 13;
    pub(super) const VARIABLE: u32 = 14;
    pub(super) const SECTION: u32 = 15;
    pub(super) const DECLARATION_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// The names of all types in a compiled BPF object, without what CO-RE ignores of them (`___x`).
pub(crate) fn names_in_object(elf: &[u8]) -> Option<HashSet<Vec<u8>>> {
    let object = object::File::parse(elf).ok()?;
    let section = object.section_by_name(".BTF")?;
    let btf = RawBtf::parse(section.data().ok()?)?;
    let names = btf.types.iter().map(|raw| btf.name(raw.name));
    Some(names.filter(|name| !name.is_empty()).map(|name| flavourless(name).to_vec()).collect())
}

/// The same type information, with only those types in full whose name is among `names`. Others
/// keep their name if it begins with one of `prefixes`. None if it is not as expected: then the
/// whole will do.
pub(crate) fn thin(btf: &[u8], names: &HashSet<Vec<u8>>, prefixes: &[&[u8]]) -> Option<Vec<u8>> {
    let btf = RawBtf::parse(btf)?;
    let filter = Filter::new(names);
    let mut keep = vec![Keep::Nothing; btf.types.len()];
    let mut whole = Vec::new();
    for (at, raw) in btf.types.iter().enumerate() {
        if raw.name == 0 || !raw.can_be_asked_for() {
            continue;
        }
        let name = btf.name(raw.name);
        if filter.may_hold(name) && names.contains(flavourless(name)) {
            whole.push(at);
        } else if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            keep[at] = Keep::Name;
        }
    }
    // A struct without a name belongs to the one it is in.
    while let Some(at) = whole.pop() {
        if keep[at] == Keep::Whole {
            continue;
        }
        keep[at] = Keep::Whole;
        for part in btf.parts(at) {
            if btf.types[part].name == 0 {
                whole.push(part);
            }
        }
    }
    Some(btf.write(&keep))
}

fn flavourless(name: &[u8]) -> &[u8] {
    match name.windows(3).position(|window| window == b"___") {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Most names can be told from the wanted ones by their length and first byte.
struct Filter([u64; 256]);

impl Filter {
    fn new(names: &HashSet<Vec<u8>>) -> Self {
        let mut filter = Self([0; 256]);
        for name in names {
            if let Some(first) = name.first() {
                filter.0[usize::from(*first)] |= 1 << name.len().min(63);
            }
        }
        filter
    }

    fn may_hold(&self, name: &[u8]) -> bool {
        let Some(first) = name.first() else { return false };
        let lengths = self.0[usize::from(*first)];
        // A name with a flavour is longer than the one that is wanted.
        let or_shorter = u64::MAX >> (63 - name.len().min(63));
        let flavoured = name.windows(3).any(|window| window == b"___");
        lengths & 1 << name.len().min(63) != 0 || (flavoured && lengths & or_shorter != 0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    Name,
    Whole,
}

struct RawBtf<'a> {
    types: Vec<RawType<'a>>,
    strings: &'a [u8],
}

/// A type as it lies in the file.
#[derive(Debug, Clone, Copy)]
struct RawType<'a> {
    name: u32,
    info: u32,
    size_or_type: u32,
    /// What follows, by its kind.
    rest: &'a [u8],
}

impl RawType<'_> {
    fn kind(&self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn can_be_asked_for(&self) -> bool {
        matches!(
            self.kind(),
            kind::STRUCT
                | kind::UNION
                | kind::ENUM
                | kind::ENUM64
                | kind::FORWARD
                | kind::TYPEDEF
                | kind::FUNCTION
                | kind::INT
        )
    }

    /// Bytes of each of its members, where it has any.
    fn member_bytes(kind: u32) -> usize {
        match kind {
            kind::STRUCT | kind::UNION | kind::SECTION | kind::ENUM64 => 12,
            kind::ENUM | kind::PROTOTYPE => 8,
            _ => 0,
        }
    }

    /// Bytes that follow whatever its members are.
    fn fixed_bytes(kind: u32) -> usize {
        match kind {
            kind::INT | kind::VARIABLE | kind::DECLARATION_TAG => 4,
            kind::ARRAY => 12,
            _ => 0,
        }
    }
}

impl<'a> RawBtf<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() < HEADER_BYTES || u16::from_le_bytes([bytes[0], bytes[1]]) != MAGIC {
            return None;
        }
        let header = |at: usize| Some(word(bytes, at)? as usize);
        let body = bytes.get(header(4)?..)?;
        let (types_at, types_bytes) = (header(8)?, header(12)?);
        let (strings_at, strings_bytes) = (header(16)?, header(20)?);
        let mut rest = body.get(types_at..types_at.checked_add(types_bytes)?)?;
        let strings = body.get(strings_at..strings_at.checked_add(strings_bytes)?)?;
        let mut types = Vec::with_capacity(rest.len() / 16);
        while !rest.is_empty() {
            let (name, info, size_or_type) = (word(rest, 0)?, word(rest, 4)?, word(rest, 8)?);
            let (kind, members) = (info >> 24 & 0x1f, info as usize & 0xffff);
            if kind == 0 || kind > kind::ENUM64 {
                return None;
            }
            let more = RawType::fixed_bytes(kind) + members * RawType::member_bytes(kind);
            let end = TYPE_BYTES + more;
            types.push(RawType { name, info, size_or_type, rest: rest.get(TYPE_BYTES..end)? });
            rest = &rest[end..];
        }
        Some(Self { types, strings })
    }

    fn name(&self, at: u32) -> &'a [u8] {
        let name = self.strings.get(at as usize..).unwrap_or_default();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        &name[..end]
    }

    /// The place of a type in the list; ids begin with 1, for 0 is void.
    fn place(&self, id: u32) -> Option<usize> {
        (id as usize).checked_sub(1).filter(|at| *at < self.types.len())
    }

    /// The structs and unions that this one has as members, through arrays and qualifiers.
    fn parts(&self, at: usize) -> Vec<usize> {
        let raw = &self.types[at];
        let members = match raw.kind() {
            kind::STRUCT | kind::UNION => raw.rest.chunks_exact(12),
            kind::TYPEDEF => return self.aggregate(raw.size_or_type).into_iter().collect(),
            _ => return Vec::new(),
        };
        members.filter_map(|member| self.aggregate(word(member, 4)?)).collect()
    }

    fn aggregate(&self, mut id: u32) -> Option<usize> {
        // as deep as the kernel lets qualifiers nest (MAX_RESOLVE_DEPTH)
        for _ in 0..32 {
            let at = self.place(id)?;
            let raw = &self.types[at];
            id = match raw.kind() {
                kind::STRUCT | kind::UNION => return Some(at),
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    raw.size_or_type
                }
                kind::ARRAY => word(raw.rest, 0)?,
                _ => return None,
            };
        }
        None
    }

    fn write(&self, keep: &[Keep]) -> Vec<u8> {
        let mut types = Vec::with_capacity(self.types.len() * 14);
        let mut strings = Strings { of: self, new: vec![0], known: HashMap::new() };
        for (raw, keep) in self.types.iter().zip(keep) {
            let kind = raw.kind();
            let name = if *keep == Keep::Nothing { 0 } else { strings.take(raw.name) };
            let member_bytes = RawType::member_bytes(kind);
            let whole = *keep == Keep::Whole || member_bytes == 0;
            // The low half is the number of members, or of what else, by kind.
            let info = if whole { raw.info } else { raw.info & !0xffff };
            for word in [name, info, raw.size_or_type] {
                types.extend_from_slice(&word.to_le_bytes());
            }
            if !whole {
                continue;
            }
            let names_its_members =
                matches!(kind, kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64);
            if names_its_members {
                for member in raw.rest.chunks_exact(member_bytes) {
                    let name = strings.take(word(member, 0).unwrap_or(0));
                    types.extend_from_slice(&name.to_le_bytes());
                    types.extend_from_slice(&member[4..]);
                }
            } else {
                types.extend_from_slice(raw.rest);
            }
        }
        let strings = strings.new;
        let mut out = Vec::with_capacity(HEADER_BYTES + types.len() + strings.len());
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&[1, 0]);
        let bytes = |list: &[u8]| u32::try_from(list.len()).unwrap_or(u32::MAX);
        for word in [HEADER_BYTES as u32, 0, bytes(&types), bytes(&types), bytes(&strings)] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&types);
        out.extend_from_slice(&strings);
        out
    }
}

/// The strings that are still named.
struct Strings<'a, 'b> {
    of: &'b RawBtf<'a>,
    new: Vec<u8>,
    known: HashMap<u32, u32>,
}

impl Strings<'_, '_> {
    fn take(&mut self, at: u32) -> u32 {
        if at == 0 {
            return 0;
        }
        let Self { of, new, known } = self;
        *known.entry(at).or_insert_with(|| {
            let taken = u32::try_from(new.len()).unwrap_or(0);
            new.extend_from_slice(of.name(at));
            new.push(0);
            taken
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Types as (name, kind, members or size, rest).
    struct Builder {
        types: Vec<u8>,
        strings: Vec<u8>,
    }

    impl Builder {
        fn new() -> Self {
            Self { types: Vec::new(), strings: vec![0] }
        }

        fn string(&mut self, name: &str) -> u32 {
            if name.is_empty() {
                return 0;
            }
            let at = self.strings.len() as u32;
            self.strings.extend_from_slice(name.as_bytes());
            self.strings.push(0);
            at
        }

        fn add(&mut self, name: &str, kind: u32, members: &[(&str, u32)], size_or_type: u32) {
            let name = self.string(name);
            let info = kind << 24 | members.len() as u32;
            for word in [name, info, size_or_type] {
                self.types.extend_from_slice(&word.to_le_bytes());
            }
            for (member, id) in members {
                let name = self.string(member);
                for word in [name, *id, 0] {
                    self.types.extend_from_slice(&word.to_le_bytes());
                }
            }
        }

        fn build(&self) -> Vec<u8> {
            let mut out = vec![0x9f, 0xeb, 1, 0];
            let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
            for word in [24, 0, types, types, strings] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            out.extend_from_slice(&self.types);
            out.extend_from_slice(&self.strings);
            out
        }
    }

    fn described(btf: &[u8]) -> Vec<(String, usize)> {
        let btf = RawBtf::parse(btf).unwrap();
        let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        btf.types.iter().map(|raw| (text(btf.name(raw.name)), raw.rest.len() / 12)).collect()
    }

    #[test]
    fn what_is_named_stays_with_its_nameless_parts_and_the_rest_is_hollow() {
        let mut builder = Builder::new();
        builder.add("task_struct", kind::STRUCT, &[("a", 2), ("", 3), ("mm", 6)], 64); // 1
        builder.add("", kind::CONST, &[], 4); // 2: const of a nameless union
        builder.add("other", kind::STRUCT, &[("x", 1)], 8); // 3: named, so not followed
        builder.add("", kind::UNION, &[("u", 5)], 8); // 4
        builder.add("mm_struct___old", kind::STRUCT, &[("rss", 1)], 8); // 5
        builder.add("btf_trace_exit", kind::TYPEDEF, &[], 1); // 6
        builder.add("unrelated", kind::TYPEDEF, &[], 1); // 7
        builder.add("", kind::STRUCT, &[("lost", 1)], 8); // 8
        let names = ["task_struct", "mm_struct"].map(|name| name.as_bytes().to_vec());
        let thinned =
            thin(&builder.build(), &HashSet::from(names), &[b"btf_trace_".as_slice()]).unwrap();
        let expected = [
            ("task_struct", 3),
            ("", 0),
            ("", 0),
            ("", 1),
            ("mm_struct___old", 1),
            ("btf_trace_exit", 0),
            ("", 0),
            ("", 0),
        ];
        assert_eq!(described(&thinned), expected.map(|(name, n)| (name.to_owned(), n)));
        let again = RawBtf::parse(&thinned).unwrap();
        let member = |at: usize, n: usize| again.name(word(again.types[at].rest, n * 12).unwrap());
        assert_eq!((member(0, 0), member(0, 2), member(3, 0)), (&b"a"[..], &b"mm"[..], &b"u"[..]));
    }

    #[test]
    fn this_kernels_types_keep_their_ids() {
        let whole = std::fs::read("/sys/kernel/btf/vmlinux").unwrap();
        let names = names_in_object(crate::object::OBJECT).unwrap();
        assert!(names.contains(&b"task_struct"[..]) && names.contains(&b"rq"[..]) == false);
        let thinned = thin(&whole, &names, &[b"btf_trace_".as_slice()]).unwrap();
        assert!(thinned.len() < whole.len() / 2, "{} of {}", thinned.len(), whole.len());
        let parse = |bytes: &[u8]| aya::Btf::parse(bytes, aya::Endianness::default()).unwrap();
        let (whole, thinned) = (parse(&whole), parse(&thinned));
        use aya_obj::btf::BtfKind::{Struct, Typedef};
        for (name, kind) in [
            ("task_struct", Struct),
            ("mm_struct", Struct),
            ("signal_struct", Struct),
            ("btf_trace_sched_process_exec", Typedef),
        ] {
            let id = whole.id_by_type_name_kind(name, kind).unwrap();
            assert_eq!(thinned.id_by_type_name_kind(name, kind).unwrap(), id, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes: Vec<u8>, valid: bool) {
            if valid && bytes.len() >= HEADER_BYTES {
                bytes[..4].copy_from_slice(&[0x9f, 0xeb, 1, 0]);
                let types = (bytes.len() - HEADER_BYTES) as u32;
                for (at, word) in [(4, 24), (8, 0), (12, types), (16, 0), (20, types)] {
                    bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
                }
            }
            let _ = thin(&bytes, &HashSet::from([b"a".to_vec()]), &[b"b".as_slice()]);
        }
    }
}
