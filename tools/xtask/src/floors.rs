//! The step `floors`: a crate may name only crates on lower floors, and floor 0 stays pure.
//!
//! Owns the rules; the table of crates is in `floors/table.rs`. Judges cargo's metadata and the sources of floor 0;
//! never decides from folder names.

mod purity;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use self::table::Place;
use crate::cargo::cargo;
use crate::process::run;
use crate::steps::Report;
use crate::workspace::Workspace;

/// A package of the workspace and the dependencies its manifest names, of every kind.
#[derive(Clone, Debug)]
struct Package {
    name: String,
    id: String,
    dependencies: Vec<Dependency>,
}

#[derive(Clone, Debug)]
struct Dependency {
    name: String,
    dev: bool,
}

/// The packages of the workspace and everything they are built with.
struct Graph {
    packages: Vec<Package>,
    /// Package id to the ids it is built with; dev-dependencies and those of build scripts are left out.
    edges: BTreeMap<String, Vec<String>>,
    /// Package id to name.
    names: BTreeMap<String, String>,
}

pub fn step(workspace: &Workspace) -> Result<Report> {
    let graph = Graph::read(&workspace.metadata()?)?;
    let mut findings = arrows(&graph.packages);
    findings.extend(purity::dependencies(&graph));
    findings.extend(purity::sources(&workspace.text_files()?));
    for finding in &findings {
        println!("floors: {finding}");
    }
    if !findings.is_empty() {
        bail!("{} arrows or uses that the floors forbid", findings.len());
    }
    Ok(Report::note(format!("{} packages; {}", graph.packages.len(), wasm(workspace)?)))
}

/// What every manifest names, judged by the table.
fn arrows(packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    for package in packages {
        let Some(from) = table::place(&package.name) else {
            findings.push(format!("{} has no floor; give it a row in the table", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            // A crate may switch on its own feature `testing` for its own tests: that is no arrow.
            let Some(to) = table::place(&dependency.name).filter(|_| dependency.name != package.name) else {
                continue;
            };
            let excepted = table::EXCEPTED.contains(&(package.name.as_str(), dependency.name.as_str()));
            if let Some(why) = forbidden(from, to).filter(|_| !excepted) {
                let kind = if dependency.dev { " as a dev-dependency" } else { "" };
                findings.push(format!("{} names {}{kind}: {why}", package.name, dependency.name));
            }
        }
    }
    findings
}

fn forbidden(from: Place, to: Place) -> Option<String> {
    match (from, to) {
        (_, Place::Outside) => Some("nobody names a tool, a bench or the tests".to_owned()),
        (Place::Outside, Place::Floor(_) | Place::Testkit) => None,
        (Place::Floor(_), Place::Testkit) => Some("no product crate names the testkit".to_owned()),
        (Place::Testkit, Place::Testkit) => None,
        (Place::Testkit, Place::Floor(to)) => {
            (to > table::TESTKIT_REACH).then(|| format!("the testkit reaches floor {}", table::TESTKIT_REACH))
        }
        (Place::Floor(from), Place::Floor(to)) if to == from => Some(format!("sideways on floor {from}")),
        (Place::Floor(from), Place::Floor(to)) => {
            (to > from).then(|| format!("upward from floor {from} to floor {to}"))
        }
    }
}

/// Builds floor 0 for a target without a host, where that target is installed; says so where it is not.
fn wasm(workspace: &Workspace) -> Result<String> {
    const TARGET: &str = "wasm32-unknown-unknown";
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let installed =
        output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
    if !installed {
        return Ok(format!(
            "{TARGET} is not installed, so floor 0 was judged by its dependencies and sources only"
        ));
    }
    let mut build = cargo(workspace);
    build.args(["build", "--locked", "--lib", "--target", TARGET]);
    for name in table::on_floor_0() {
        build.args(["--package", name]);
    }
    run(&mut build)?;
    Ok(format!("floor 0 builds for {TARGET}"))
}

impl Graph {
    fn read(metadata: &Value) -> Result<Self> {
        let members: Vec<&str> = strings(&metadata["workspace_members"]);
        let mut names = BTreeMap::new();
        let mut packages = Vec::new();
        for package in array(&metadata["packages"]) {
            let id = text(&package["id"])?;
            let name = text(&package["name"])?;
            names.insert(id.clone(), name.clone());
            if members.contains(&id.as_str()) {
                let dependencies =
                    array(&package["dependencies"]).iter().map(Dependency::read).collect::<Result<_>>()?;
                packages.push(Package { name, id, dependencies });
            }
        }
        let mut edges = BTreeMap::new();
        for node in array(&metadata["resolve"]["nodes"]) {
            let built_with =
                array(&node["deps"]).iter().filter(|dep| is_built_in(dep)).map(|dep| text(&dep["pkg"]));
            edges.insert(text(&node["id"])?, built_with.collect::<Result<_>>()?);
        }
        Ok(Self { packages, edges, names })
    }
}

impl Dependency {
    fn read(value: &Value) -> Result<Self> {
        Ok(Self { name: text(&value["name"])?, dev: value["kind"] == "dev" })
    }
}

/// Whether this edge of the resolve graph ends in the product: not a dev-dependency and not a build script's.
fn is_built_in(dep: &Value) -> bool {
    array(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn strings(value: &Value) -> Vec<&str> {
    array(value).iter().filter_map(Value::as_str).collect()
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).context("cargo metadata lacks a name or an id")
}
