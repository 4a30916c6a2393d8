//! Floor 0 takes time, randomness and bytes as arguments: judged by its manifests, its graph and its sources.

use std::collections::BTreeSet;

use super::Graph;
use super::table;
use crate::tidy::Source;
use crate::workspace::TextFile;

/// What the manifests of floor 0 name, and what stands below it in the graph.
pub fn dependencies(graph: &Graph) -> Vec<String> {
    let mut findings = Vec::new();
    for package in graph.packages.iter().filter(|package| table::place(&package.name) == Some(table::GROUND))
    {
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let allowed = table::PURE_DEPENDENCIES.contains(&name)
                || (dependency.dev && table::PURE_DEV_DEPENDENCIES.contains(&name))
                || table::place(name).is_some();
            if !allowed {
                findings.push(format!("{} names {name}, which is not on the list for floor 0", package.name));
            }
        }
        for name in below(graph, &package.id) {
            if table::HOST_CRATES.contains(&name) {
                findings.push(format!("{} is built with {name}, which reaches the host", package.name));
            }
        }
    }
    findings
}

/// The names of all crates built into the one with this id.
fn below<'a>(graph: &'a Graph, id: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::from([id]);
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        for next in graph.edges.get(id).into_iter().flatten() {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    seen.remove(id);
    seen.into_iter().filter_map(|id| graph.names.get(id)).map(String::as_str).collect()
}

/// Uses of the host in the production lines of floor 0.
pub fn sources(files: &[TextFile]) -> Vec<String> {
    let pure = |file: &&TextFile| table::PURE_FOLDERS.iter().any(|folder| file.path.starts_with(folder));
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()).filter(pure) {
        let source = Source::new(file);
        if source.is_test_file() {
            continue;
        }
        for (number, line) in source.production_lines() {
            for path in table::HOST_PATHS.iter().filter(|path| line.contains(**path)) {
                findings.push(format!("{}:{number} uses {path}; floor 0 has no host", file.path));
            }
        }
    }
    findings
}
