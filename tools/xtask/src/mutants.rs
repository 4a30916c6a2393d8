//! `cargo xtask mutants`: small patches that each bring back a classic fault, and the tests that must notice.
//!
//! Each patch of `tools/mutants` is applied to a scratch copy of the tree, built and tested there. One that no longer
//! applies, does not build, or survives its tests is a failure. Without arguments a part that changes from day to
//! day is run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::steps::Report;
use crate::workspace::{Workspace, target_folder};

const FOLDER: &str = "tools/mutants";
/// How many of them a part has.
const PART: usize = 3;

/// One fault: what it is, where the tests are, which of them must fail, and the patch.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    name: String,
    what: String,
    package: String,
    /// Filters of test names; empty: all tests of the package's library.
    tests: Vec<String>,
}

impl Mutant {
    fn read(path: &Path) -> Result<Mutant> {
        let text = std::fs::read_to_string(path)?;
        let name = path.file_stem().context("a patch has a name")?.to_string_lossy().into_owned();
        let field = |key: &str| {
            let line = text.lines().take(3).find_map(|line| line.strip_prefix(key));
            line.map(str::trim).map(str::to_owned).with_context(|| format!("{name} has no line `{key}`"))
        };
        let tests = field("Tests:")?;
        let tests = tests.split(' ').filter(|test| *test != "all").map(str::to_owned).collect();
        Ok(Mutant { what: field("What:")?, package: field("Package:")?, tests, name })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Killed,
    Survived,
    NotApplied,
    NotBuilt,
    /// Its tests fail without it, too: that they fail with it says nothing.
    NothingToTell,
}

pub fn run_args(workspace: &Workspace, args: &[String]) -> Result<()> {
    let all = read_all(workspace)?;
    let chosen: Vec<&Mutant> = match args {
        [] => part(&all, day()),
        [flag] if flag == "--all" => all.iter().collect(),
        names => {
            let known = |name: &String| all.iter().find(|mutant| mutant.name == *name);
            names
                .iter()
                .map(|name| known(name).with_context(|| format!("no mutant `{name}` in {FOLDER}")))
                .collect::<Result<_>>()?
        }
    };
    println!("{}", run(workspace, &chosen, all.len())?);
    Ok(())
}

/// The part of the day.
pub fn step(workspace: &Workspace) -> Result<Report> {
    let all = read_all(workspace)?;
    Ok(Report::note(run(workspace, &part(&all, day()), all.len())?))
}

fn read_all(workspace: &Workspace) -> Result<Vec<Mutant>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(workspace.root.join(FOLDER))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "patch") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.len() < 20 {
        bail!("{FOLDER} holds {} patches; there were at least 20", paths.len());
    }
    paths.iter().map(|path| Mutant::read(path)).collect()
}

fn day() -> usize {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs() / 86_400) as usize
}

/// Every mutant has its turn within so many days as there are parts.
fn part(all: &[Mutant], day: usize) -> Vec<&Mutant> {
    let parts = all.len().div_ceil(PART);
    all.iter().skip(day % parts).step_by(parts).collect()
}

fn run(workspace: &Workspace, chosen: &[&Mutant], of: usize) -> Result<String> {
    let scratch = Scratch::make(workspace)?;
    let mut failed = Vec::new();
    let mut sound = BTreeSet::new();
    for mutant in chosen {
        let start = Instant::now();
        let tests = (&mutant.package, &mutant.tests);
        let fate = match sound.contains(&tests) || scratch.passes(workspace, mutant)? {
            true => scratch.try_one(workspace, mutant)?,
            false => Fate::NothingToTell,
        };
        sound.insert(tests);
        println!("{:<44} {fate:?} in {} s: {}", mutant.name, start.elapsed().as_secs(), mutant.what);
        if fate != Fate::Killed {
            failed.push(format!("{} ({fate:?})", mutant.name));
        }
    }
    if !failed.is_empty() {
        bail!("not killed: {}", failed.join(", "));
    }
    Ok(format!("{} of {of} mutants, all killed", chosen.len()))
}

/// A copy of the tracked files, with a target folder of its own: cargo must never mix artifacts of patched and of
/// unpatched sources.
struct Scratch {
    tree: PathBuf,
    target: PathBuf,
}

impl Scratch {
    fn make(workspace: &Workspace) -> Result<Scratch> {
        let folder = target_folder(workspace)?.join("mutants");
        let (tree, target) = (folder.join("tree"), folder.join("target"));
        if tree.exists() {
            std::fs::remove_dir_all(&tree)?;
        }
        for path in workspace.paths()? {
            let from = workspace.root.join(&path);
            if !from.is_file() {
                continue;
            }
            let to = tree.join(&path);
            std::fs::create_dir_all(to.parent().context("a file has a folder")?)?;
            std::fs::copy(&from, &to)?;
        }
        // A repository of its own, so that git does not look for one further up.
        git(&tree, &["init", "--quiet"])?;
        Ok(Scratch { tree, target })
    }

    fn try_one(&self, workspace: &Workspace, mutant: &Mutant) -> Result<Fate> {
        let patch = workspace.root.join(FOLDER).join(format!("{}.patch", mutant.name));
        let patch = patch.to_string_lossy().into_owned();
        if git(&self.tree, &["apply", &patch]).is_err() {
            return Ok(Fate::NotApplied);
        }
        let fate = self.judge(workspace, mutant);
        git(&self.tree, &["apply", "--reverse", &patch])?;
        fate
    }

    fn judge(&self, workspace: &Workspace, mutant: &Mutant) -> Result<Fate> {
        if !self.cargo(workspace, mutant, &["--no-run"])? {
            return Ok(Fate::NotBuilt);
        }
        Ok(if self.passes(workspace, mutant)? { Fate::Survived } else { Fate::Killed })
    }

    /// Whether the tests that the mutant names pass on the tree as it is now.
    fn passes(&self, workspace: &Workspace, mutant: &Mutant) -> Result<bool> {
        let mut filters = vec!["--"];
        filters.extend(mutant.tests.iter().map(String::as_str));
        let passed = self.cargo(workspace, mutant, &filters)?;
        if passed && std::fs::read_to_string(self.log())?.contains("running 0 tests") {
            bail!("the tests that {} names are not there", mutant.name);
        }
        Ok(passed)
    }

    fn cargo(&self, workspace: &Workspace, mutant: &Mutant, extra: &[&str]) -> Result<bool> {
        let mut command = crate::cargo::cargo(workspace);
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        command.args(["test", "--quiet", "--locked", "-p", &mutant.package, "--lib"]).args(extra);
        let out = std::fs::File::create(self.log())?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        Ok(command.status()?.success())
    }

    fn log(&self) -> PathBuf {
        self.target.with_extension("log")
    }
}

fn git(folder: &Path, args: &[&str]) -> Result<()> {
    let output = Command::new("git").args(args).current_dir(folder).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(name: &str) -> Mutant {
        Mutant { name: name.to_owned(), what: String::new(), package: String::new(), tests: Vec::new() }
    }

    #[test]
    fn every_mutant_has_its_day() {
        let all: Vec<Mutant> = (0..28).map(|at| mutant(&at.to_string())).collect();
        let parts = all.len().div_ceil(PART);
        let mut seen: Vec<&str> =
            (0..parts).flat_map(|day| part(&all, 20_000 + day)).map(|mutant| mutant.name.as_str()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all.len());
        assert!((0..parts).all(|day| (2..=PART).contains(&part(&all, day).len())));
    }

    #[test]
    fn a_patch_says_what_it_is_and_who_must_notice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.patch");
        std::fs::write(&path, "What: a fault\nPackage: p\nTests: one:: two::\n\n--- a/x\n").unwrap();
        let read = Mutant::read(&path).unwrap();
        assert_eq!((read.what.as_str(), read.package.as_str()), ("a fault", "p"));
        assert_eq!((read.name.as_str(), read.tests), ("a", vec!["one::".to_owned(), "two::".to_owned()]));
        std::fs::write(&path, "--- a/x\n").unwrap();
        assert!(Mutant::read(&path).is_err());
    }
}
