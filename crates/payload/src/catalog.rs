//! The scenarios that come with the program.

/// The files of fixtures/payloads, by name.
const FILES: [(&str, &str); 16] = [
    ("alice-o2-before", include_str!("../../../fixtures/payloads/alice-o2-before.toml")),
    ("alice-o2-after", include_str!("../../../fixtures/payloads/alice-o2-after.toml")),
    ("athena-mp", include_str!("../../../fixtures/payloads/athena-mp.toml")),
    ("athena-mp-late", include_str!("../../../fixtures/payloads/athena-mp-late.toml")),
    ("athena-mj", include_str!("../../../fixtures/payloads/athena-mj.toml")),
    ("shared-writer-legacy", include_str!("../../../fixtures/payloads/shared-writer-legacy.toml")),
    ("shared-writer-new", include_str!("../../../fixtures/payloads/shared-writer-new.toml")),
    ("cmssw-generation", include_str!("../../../fixtures/payloads/cmssw-generation.toml")),
    ("cmssw-overlay", include_str!("../../../fixtures/payloads/cmssw-overlay.toml")),
    ("cmssw-reconstruction", include_str!("../../../fixtures/payloads/cmssw-reconstruction.toml")),
    ("storm-spawn", include_str!("../../../fixtures/payloads/storm-spawn.toml")),
    ("storm-fork", include_str!("../../../fixtures/payloads/storm-fork.toml")),
    ("storm-threads", include_str!("../../../fixtures/payloads/storm-threads.toml")),
    ("storm-opens", include_str!("../../../fixtures/payloads/storm-opens.toml")),
    ("storm-calls", include_str!("../../../fixtures/payloads/storm-calls.toml")),
    ("storm-cpu", include_str!("../../../fixtures/payloads/storm-cpu.toml")),
];

/// Names of all scenarios, in the order they are listed.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The text of a scenario's file.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
