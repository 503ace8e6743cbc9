//! Reduces the kernel's type information to what a loader needs.
//!
//! A kernel describes 150,000 types in 5 MB, and the loader stores each as a separate value and
//! compares names with all of them: 90 ms of CPU time and 80 MB at the start of every recording,
//! for three dozen structs. So two extracts are made. One contains the types that the BPF programs
//! refer to, for their relocation. The other contains the ids of attach targets: ids are positions
//! in the list, so it is as long as the kernel's, but contains little else.
//!
//! The format: Documentation/bpf/btf.rst.

use std::collections::{HashMap, HashSet};

use object::{Object, ObjectSection};

const HEADER_BYTES: usize = 24;
const MAGIC: u16 = 0xeb9f;
const TYPE_BYTES: usize = 12;

mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const POINTER: u32 = 2;
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

/// The names of all types in a compiled BPF object, without the suffix that CO-RE ignores (`___x`).
pub(crate) fn names_in_object(elf: &[u8]) -> Option<HashSet<Vec<u8>>> {
    let object = object::File::parse(elf).ok()?;
    let section = object.section_by_name(".BTF")?;
    let btf = RawBtf::parse(section.data().ok()?)?;
    let names = btf.types().map(|raw| btf.name(raw.name));
    Some(names.filter(|name| !name.is_empty()).map(|name| flavourless(name).to_vec()).collect())
}

/// The extracts of a kernel's type information.
pub(crate) struct Extracts {
    /// Types with the wanted names and the types of their members, renumbered.
    pub(crate) named: Vec<u8>,
    /// Types whose names have a requested prefix, with their original ids.
    pub(crate) attachable: Vec<u8>,
}

/// Extracts from `btf`. None if its format is unexpected: then the whole has to be used.
pub(crate) fn extract(
    btf: &[u8],
    names: &HashSet<Vec<u8>>,
    prefixes: &[&[u8]],
) -> Option<Extracts> {
    let btf = RawBtf::parse(btf)?;
    let filter = Filter::new(names);
    let (mut wanted, mut attachable) = (Vec::new(), Vec::new());
    for (at, raw) in btf.types().enumerate() {
        if raw.name == 0 || !raw.can_be_asked_for() {
            continue;
        }
        let name = btf.name(raw.name);
        if filter.may_hold(name) && names.contains(flavourless(name)) {
            wanted.push(at);
        } else if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            attachable.push(at);
        }
    }
    Some(Extracts { named: btf.write_named(&wanted), attachable: btf.write_names(&attachable) })
}

fn flavourless(name: &[u8]) -> &[u8] {
    match name.windows(3).position(|window| window == b"___") {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Rejects most unwanted names by length and first byte.
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
        // A name with a flavour suffix is longer than the wanted one.
        let or_shorter = u64::MAX >> (63 - name.len().min(63));
        let flavoured = name.windows(3).any(|window| window == b"___");
        lengths & 1 << name.len().min(63) != 0 || (flavoured && lengths & or_shorter != 0)
    }
}

struct RawBtf<'a> {
    types: &'a [u8],
    /// Offset of each type; every type has been checked to be complete.
    starts: Vec<u32>,
    strings: &'a [u8],
}

/// A type as encoded in the file.
#[derive(Debug, Clone, Copy)]
struct RawType<'a> {
    name: u32,
    info: u32,
    size_or_type: u32,
    /// The kind-specific data that follows.
    rest: &'a [u8],
}

impl<'a> RawType<'a> {
    /// The type at this offset. None if it is truncated or of unknown kind.
    fn read(types: &'a [u8], at: usize) -> Option<Self> {
        let (name, info) = (word(types, at)?, word(types, at + 4)?);
        let size_or_type = word(types, at + 8)?;
        let (kind, members) = (info >> 24 & 0x1f, info as usize & 0xffff);
        if kind == 0 || kind > kind::ENUM64 {
            return None;
        }
        let more = Self::fixed_bytes(kind) + members * Self::member_bytes(kind);
        let rest = types.get(at + TYPE_BYTES..at + TYPE_BYTES + more)?;
        Some(Self { name, info, size_or_type, rest })
    }

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

    fn is_aggregate(&self) -> bool {
        matches!(self.kind(), kind::STRUCT | kind::UNION)
    }

    /// True if its third word is the id of another type.
    fn refers(&self) -> bool {
        matches!(
            self.kind(),
            kind::POINTER
                | kind::TYPEDEF
                | kind::VOLATILE
                | kind::CONST
                | kind::RESTRICT
                | kind::TYPE_TAG
        )
    }

    /// Size of each member, if it has any.
    fn member_bytes(kind: u32) -> usize {
        match kind {
            kind::STRUCT | kind::UNION | kind::SECTION | kind::ENUM64 => 12,
            kind::ENUM | kind::PROTOTYPE => 8,
            _ => 0,
        }
    }

    /// Size of the data that precedes any members.
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
        let types = body.get(types_at..types_at.checked_add(types_bytes)?)?;
        let strings = body.get(strings_at..strings_at.checked_add(strings_bytes)?)?;
        let mut starts = Vec::with_capacity(types.len() / 24);
        let mut at = 0;
        while at < types.len() {
            starts.push(u32::try_from(at).ok()?);
            at += TYPE_BYTES + RawType::read(types, at)?.rest.len();
        }
        Some(Self { types, starts, strings })
    }

    fn types(&self) -> impl Iterator<Item = RawType<'a>> {
        (0..self.starts.len()).filter_map(|at| self.get(at))
    }

    /// The type at a position of the list; never None for existing positions.
    fn get(&self, at: usize) -> Option<RawType<'a>> {
        RawType::read(self.types, *self.starts.get(at)? as usize)
    }

    fn name(&self, at: u32) -> &'a [u8] {
        let name = self.strings.get(at as usize..).unwrap_or_default();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        &name[..end]
    }

    /// The position of a type in the list; ids start at 1, because 0 is void.
    fn place(&self, id: u32) -> Option<usize> {
        (id as usize).checked_sub(1).filter(|at| *at < self.starts.len())
    }

    /// The types at these positions, without members. Dummy types fill the gaps.
    fn write_names(&self, keep: &[usize]) -> Vec<u8> {
        let places = keep.last().map_or(0, |last| last + 1);
        let mut out = Writer::new(self, places * TYPE_BYTES);
        let mut keep = keep.iter().peekable();
        for place in 0..places {
            let kept = keep.next_if_eq(&&place).and_then(|at| self.get(*at));
            let Some(raw) = kept else {
                out.head(0, kind::FORWARD << 24, 0);
                continue;
            };
            let hollow = RawType::member_bytes(raw.kind()) > 0;
            // The low half is the number of members, or has another meaning depending on the kind.
            let info = if hollow { raw.info & !0xffff } else { raw.info };
            out.head(raw.name, info, raw.size_or_type);
            if !hollow {
                out.bytes.extend_from_slice(raw.rest);
            }
        }
        out.finish()
    }

    /// The wanted types with all their members, and the types of these as far as needed: unnamed
    /// structs in full, others without members, and pointers without a target.
    fn write_named(&self, wanted: &[usize]) -> Vec<u8> {
        // In the order of their new ids, which start at 1.
        let mut list: Vec<(usize, bool)> = Vec::new();
        let mut ids: HashMap<usize, u32> = HashMap::new();
        for at in wanted {
            ids.insert(*at, u32::try_from(list.len()).unwrap_or(u32::MAX - 1) + 1);
            list.push((*at, true));
        }
        let mut next = 0;
        while let Some((at, whole)) = list.get(next).copied() {
            next += 1;
            for id in self.references(at, whole) {
                let Some(part) = self.place(id) else { continue };
                ids.entry(part).or_insert_with(|| {
                    let nameless =
                        self.get(part).is_none_or(|raw| raw.name == 0 || !raw.is_aggregate());
                    list.push((part, nameless));
                    u32::try_from(list.len()).unwrap_or(u32::MAX)
                });
            }
        }
        let new_id = |id: u32| self.place(id).and_then(|at| ids.get(&at)).copied().unwrap_or(0);
        let mut out = Writer::new(self, list.len() * 64);
        for (raw, whole) in list.iter().filter_map(|(at, whole)| Some((self.get(*at)?, *whole))) {
            let kind = raw.kind();
            let member_bytes = RawType::member_bytes(kind);
            let info = if whole { raw.info } else { raw.info & !0xffff };
            let size_or_type =
                if raw.refers() { new_id(raw.size_or_type) } else { raw.size_or_type };
            out.head(raw.name, info, size_or_type);
            match kind {
                kind::ARRAY => {
                    for at in [0, 4] {
                        out.word(new_id(word(raw.rest, at).unwrap_or(0)));
                    }
                    out.word(word(raw.rest, 8).unwrap_or(0));
                }
                kind::STRUCT | kind::UNION if whole => {
                    for member in raw.rest.chunks_exact(member_bytes) {
                        let part = |at| word(member, at).unwrap_or(0);
                        out.string(part(0));
                        out.word(new_id(part(4)));
                        out.word(part(8));
                    }
                }
                kind::ENUM | kind::ENUM64 if whole => {
                    for member in raw.rest.chunks_exact(member_bytes) {
                        out.string(word(member, 0).unwrap_or(0));
                        out.bytes.extend_from_slice(&member[4..]);
                    }
                }
                kind::INT => out.bytes.extend_from_slice(raw.rest),
                _ => {}
            }
        }
        out.finish()
    }

    /// The types that this one refers to.
    fn references(&self, at: usize, whole: bool) -> Vec<u32> {
        let Some(raw) = self.get(at) else { return Vec::new() };
        match raw.kind() {
            kind::STRUCT | kind::UNION if whole => {
                raw.rest.chunks_exact(12).filter_map(|member| word(member, 4)).collect()
            }
            kind::ARRAY => [0, 4].into_iter().filter_map(|at| word(raw.rest, at)).collect(),
            kind::POINTER => Vec::new(),
            _ if raw.refers() => vec![raw.size_or_type],
            _ => Vec::new(),
        }
    }
}

/// Builder of type information.
struct Writer<'a, 'b> {
    /// Room for the header, then the types.
    bytes: Vec<u8>,
    strings: Strings<'a, 'b>,
}

impl<'a, 'b> Writer<'a, 'b> {
    /// Reserves space for `bytes` bytes of types.
    fn new(of: &'b RawBtf<'a>, bytes: usize) -> Self {
        let strings = Strings { of, new: vec![0], known: HashMap::new() };
        // The strings follow the types: a few KB, independent of the rest.
        let mut room = Vec::with_capacity(HEADER_BYTES + bytes + (64 << 10));
        room.resize(HEADER_BYTES, 0);
        Self { bytes: room, strings }
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }

    fn string(&mut self, at: u32) {
        let at = self.strings.take(at);
        self.word(at);
    }

    fn head(&mut self, name: u32, info: u32, size_or_type: u32) {
        self.string(name);
        self.word(info);
        self.word(size_or_type);
    }

    fn finish(self) -> Vec<u8> {
        let (mut out, strings) = (self.bytes, self.strings.new);
        let bytes = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        let types = bytes(out.len() - HEADER_BYTES);
        out.extend_from_slice(&strings);
        let magic = u32::from(MAGIC) | 1 << 16; // and the version
        let header = [magic, HEADER_BYTES as u32, 0, types, types, bytes(strings.len())];
        for (to, word) in out.chunks_exact_mut(4).zip(header) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        out
    }
}

/// The strings still referred to.
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
mod tests;
