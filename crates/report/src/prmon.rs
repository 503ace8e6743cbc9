//! The files of the sampler prmon: prmon.txt with a row per reading, prmon.json with the totals.

use std::io::{self, Write};

use proctrace_findings::{Prmon, PrmonColumn};
use serde_json::{Map, Value, json};

use crate::escape;

/// Writes prmon.txt: a line with the names of the columns, then one for each row, separated by tabs.
///
/// # Errors
/// If `out` cannot be written.
pub fn prmon_text(prmon: &Prmon, out: &mut impl Write) -> io::Result<()> {
    let line = |cells: Vec<String>| cells.join("\t") + "\n";
    let names = prmon.columns.iter().map(|column| column.name.to_owned()).collect();
    out.write_all(line(names).as_bytes())?;
    let rows = prmon.columns.iter().map(|column| column.values.len()).min().unwrap_or(0);
    for row in 0..rows {
        let cells = prmon.columns.iter().map(|column| column.values[row].to_string());
        out.write_all(line(cells.collect()).as_bytes())?;
    }
    Ok(())
}

/// The contents of prmon.json.
///
/// # Errors
/// None known: all values are serialisable.
pub fn prmon_json(prmon: &Prmon) -> Result<String, serde_json::Error> {
    let of = |value: fn(&PrmonColumn) -> Option<Value>| -> Map<String, Value> {
        let known = prmon.columns.iter();
        known.filter_map(|column| Some((column.name.to_owned(), value(column)?))).collect()
    };
    let machine = &prmon.machine;
    let cpu = [
        ("CPUs", machine.cpus.map(Value::from)),
        ("CoresPerSocket", machine.cores_per_socket.map(Value::from)),
        ("ModelName", machine.model.clone().map(Value::from)),
        ("Sockets", machine.sockets.map(Value::from)),
        ("ThreadsPerCore", machine.threads_per_core.map(Value::from)),
    ];
    let cpu: Map<String, Value> =
        cpu.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    // Of an imported log the machine is not known.
    let memory = match machine.memory_bytes {
        0 => json!({}),
        bytes => json!({"MemTotal": bytes / 1024}),
    };
    let all = json!({
        "Avg": of(|column| column.average.map(|average| json!((average * 1e3).round() / 1e3))),
        "HW": {"cpu": cpu, "mem": memory},
        "Max": of(|column| column.max.map(Value::from)),
        // Readers show it; it says what the file is not from.
        "prmon": {"Version": format!("proctrace {}", prmon.recorder)},
    });
    escape::json_text(&all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::{PrmonMachine, Unit};

    fn sample() -> Prmon {
        let column = |name, values: [u64; 2], max, average| PrmonColumn {
            name,
            values: values.to_vec(),
            max,
            average,
            unit: Unit::Count,
        };
        Prmon {
            columns: vec![
                column("Time", [7, 9], None, None),
                column("wtime", [0, 2], Some(3), None),
                column("rchar", [0, 40], Some(90), Some(30.0)),
                column("nprocs", [1, 2], Some(2), Some(4.0 / 3.0)),
            ],
            machine: PrmonMachine {
                model: Some("A\u{1b}[31m".into()),
                cpus: Some(8),
                memory_bytes: 4 << 20,
                ..PrmonMachine::default()
            },
            recorder: "1.2".into(),
        }
    }

    #[test]
    fn text_has_tabs_and_no_empty_cell() {
        let mut out = Vec::new();
        prmon_text(&sample(), &mut out).unwrap();
        let expected = "Time\twtime\trchar\tnprocs\n7\t0\t0\t1\n9\t2\t40\t2\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn json_has_the_four_objects() {
        let text = prmon_json(&sample()).unwrap();
        assert!(!text.contains('\u{1b}'), "{text}");
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["Max"], json!({"wtime": 3, "rchar": 90, "nprocs": 2}));
        assert_eq!(all["Avg"], json!({"rchar": 30.0, "nprocs": 1.333}));
        assert_eq!(all["HW"]["mem"]["MemTotal"], 4096);
        assert_eq!(all["HW"]["cpu"], json!({"CPUs": 8, "ModelName": "A\u{1b}[31m"}));
        assert_eq!(all["prmon"]["Version"], "proctrace 1.2");
    }
}
