//! Which steps read what others write, as a graph: in the language of Graphviz (dot(1)) and in that of Mermaid.

use std::fmt::Write;

use proctrace_findings::{StepGraph, count, counted};

/// A language of graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphLanguage {
    /// Graphviz.
    Dot,
    /// Mermaid: a flow chart.
    Mermaid,
}

impl GraphLanguage {
    /// The graph.
    pub fn write(self, graph: &StepGraph) -> String {
        match self {
            Self::Dot => dot(graph),
            Self::Mermaid => mermaid(graph),
        }
    }
}

/// The name of a node, and how many steps it stands for.
fn label(graph: &StepGraph, node: usize) -> String {
    let (name, steps) = &graph.nodes[node];
    // A name is one line, whatever is in it.
    let name: String = name.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    if *steps > 1 { format!("{name} ×{}", count(*steps)) } else { name }
}

fn dot(graph: &StepGraph) -> String {
    let mut text = String::from("digraph steps {\n  rankdir=LR\n  node [shape=box]\n");
    let quoted = |label: &str| label.replace('\\', "\\\\").replace('"', "\\\"");
    for node in 0..graph.nodes.len() {
        let _ = writeln!(text, "  n{node} [label=\"{}\"]", quoted(&label(graph, node)));
    }
    for edge in &graph.edges {
        let files = counted(edge.files, "file", "files");
        let missing = if edge.is_missing { ", color=red, style=dashed" } else { "" };
        let _ =
            writeln!(text, "  n{} -> n{} [label=\"{files}\"{missing}]", edge.writer, edge.reader);
    }
    text.push_str("}\n");
    text
}

fn mermaid(graph: &StepGraph) -> String {
    let mut text = String::from("flowchart LR\n");
    // Within quotes, only these end a label or begin an entity (mermaid.js.org, "Entity codes to escape characters").
    let quoted = |label: &str| {
        let mut out = String::with_capacity(label.len());
        for letter in label.chars() {
            match letter {
                '#' => out.push_str("#35;"),
                '"' => out.push_str("#quot;"),
                '<' => out.push_str("#lt;"),
                '>' => out.push_str("#gt;"),
                '`' => out.push_str("#96;"),
                _ => out.push(letter),
            }
        }
        out
    };
    for node in 0..graph.nodes.len() {
        let _ = writeln!(text, "  n{node}[\"{}\"]", quoted(&label(graph, node)));
    }
    for edge in &graph.edges {
        let files = counted(edge.files, "file", "files");
        let line = if edge.is_missing { "-.->" } else { "-->" };
        let _ = writeln!(text, "  n{} {line}|{files}| n{}", edge.writer, edge.reader);
    }
    for (at, _) in graph.edges.iter().enumerate().filter(|(_, edge)| edge.is_missing) {
        let _ = writeln!(text, "  linkStyle {at} stroke:red");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::StepEdge;

    fn graph() -> StepGraph {
        let edge =
            |writer, reader, files, is_missing| StepEdge { writer, reader, files, is_missing };
        StepGraph {
            nodes: vec![("gen".into(), 1), ("a\"]\n<b>#\\".into(), 3), ("merge".into(), 1)],
            edges: vec![edge(0, 1, 1, false), edge(1, 2, 2, true)],
            is_of_groups: false,
        }
    }

    #[test]
    fn graphviz_has_boxes_and_dashed_lines() {
        assert_eq!(
            GraphLanguage::Dot.write(&graph()),
            "digraph steps {\n  rankdir=LR\n  node [shape=box]\n  n0 [label=\"gen\"]\n  \
             n1 [label=\"a\\\"] <b>#\\\\ ×3\"]\n  n2 [label=\"merge\"]\n  n0 -> n1 [label=\"1 file\"]\n  \
             n1 -> n2 [label=\"2 files\", color=red, style=dashed]\n}\n"
        );
    }

    #[test]
    fn mermaid_has_the_same() {
        assert_eq!(
            GraphLanguage::Mermaid.write(&graph()),
            "flowchart LR\n  n0[\"gen\"]\n  n1[\"a#quot;] #lt;b#gt;#35;\\ ×3\"]\n  n2[\"merge\"]\n  \
             n0 -->|1 file| n1\n  n1 -.->|2 files| n2\n  linkStyle 1 stroke:red\n"
        );
    }
}
