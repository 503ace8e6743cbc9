//! Extracts from constructed types, and from this kernel's.

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
    btf.types().map(|raw| (text(btf.name(raw.name)), raw.rest.len() / 12)).collect()
}

fn sample() -> Extracts {
    let mut builder = Builder::new();
    let members = [("a", 2), ("", 4), ("mm", 9), ("list", 10)];
    builder.add("task_struct", kind::STRUCT, &members, 64); // 1
    builder.add("", kind::CONST, &[], 3); // 2
    builder.add("other", kind::STRUCT, &[("x", 1)], 8); // 3: named, so hollow
    builder.add("", kind::UNION, &[("u", 7)], 8); // 4
    builder.add("mm_struct___old", kind::STRUCT, &[("rss", 7)], 8); // 5
    builder.add("btf_trace_exit", kind::TYPEDEF, &[], 1); // 6
    builder.add("count_t", kind::TYPEDEF, &[], 3); // 7
    builder.add("", kind::STRUCT, &[("lost", 1)], 8); // 8
    builder.add("", kind::POINTER, &[], 8); // 9
    builder.add("", kind::VOLATILE, &[], 9); // 10
    let names = ["task_struct", "mm_struct"].map(|name| name.as_bytes().to_vec());
    let prefixes = [b"btf_trace_".as_slice()];
    extract(&builder.build(), &HashSet::from(names), &prefixes).unwrap()
}

fn expected(types: &[(&str, usize)]) -> Vec<(String, usize)> {
    types.iter().map(|(name, members)| ((*name).to_owned(), *members)).collect()
}

#[test]
fn what_is_named_comes_with_what_it_is_made_of() {
    let named = sample().named;
    let types = [
        ("task_struct", 4),
        ("mm_struct___old", 1),
        ("", 0),        // const
        ("", 1),        // the union
        ("", 0),        // pointer
        ("", 0),        // volatile
        ("count_t", 0), // of the union and of mm_struct
        ("other", 0),
    ];
    let mut found = described(&named);
    let mut all = expected(&types);
    found.sort();
    all.sort();
    assert_eq!(found, all);
    let btf = RawBtf::parse(&named).unwrap();
    let member = |n: usize| {
        let raw = btf.get(0).unwrap().rest;
        let id = word(raw, n * 12 + 4).unwrap();
        (btf.name(word(raw, n * 12).unwrap()), btf.get(btf.place(id).unwrap()).unwrap().kind())
    };
    assert_eq!(member(0), (&b"a"[..], kind::CONST));
    assert_eq!(member(1), (&b""[..], kind::UNION));
    assert_eq!(member(2), (&b"mm"[..], kind::POINTER));
    // A pointer without a target, because the target was not requested.
    let pointer = btf.types().find(|raw| raw.kind() == kind::POINTER).unwrap();
    assert_eq!(pointer.size_or_type, 0);
}

#[test]
fn what_can_be_attached_to_keeps_its_place() {
    // the sixth of ten
    let mut types = [("", 0); 6];
    types[5].0 = "btf_trace_exit";
    assert_eq!(described(&sample().attachable), expected(&types));
}

#[test]
fn this_kernels_types_keep_their_ids() {
    use aya_obj::btf::BtfKind::{Func, Struct, Typedef};
    let whole = std::fs::read("/sys/kernel/btf/vmlinux").unwrap();
    let names = names_in_object(&crate::compiled::programs()).unwrap();
    assert!(names.contains(&b"task_struct"[..]) && !names.contains(&b"rq"[..]));
    let prefixes = [b"btf_trace_".as_slice(), b"bpf_iter_task"];
    let extracts = extract(&whole, &names, &prefixes).unwrap();
    assert!(extracts.named.len() < 200_000, "{}", extracts.named.len());
    let parse = |bytes: &[u8]| aya::Btf::parse(bytes, aya::Endianness::default()).unwrap();
    let (whole, attachable, named) =
        (parse(&whole), parse(&extracts.attachable), parse(&extracts.named));
    for (name, kind) in [("btf_trace_sched_process_exec", Typedef), ("bpf_iter_task", Func)] {
        let id = whole.id_by_type_name_kind(name, kind).unwrap();
        assert_eq!(attachable.id_by_type_name_kind(name, kind).unwrap(), id, "{name}");
    }
    for name in ["task_struct", "mm_struct", "signal_struct"] {
        named.id_by_type_name_kind(name, Struct).unwrap();
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
        let _ = extract(&bytes, &HashSet::from([b"a".to_vec()]), &[b"b".as_slice()]);
    }
}
