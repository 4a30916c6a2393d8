//! The step `locks`: every `Cargo.lock` of the tree is what its manifests say. The workspaces beside the product's are
//! built by no other step, so nothing else would notice. Must never write a lock file.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cargo::cargo;
use crate::steps::Report;
use crate::workspace::Workspace;

const LOCK: &str = "Cargo.lock";

pub fn step(workspace: &Workspace) -> Result<Report> {
    let paths = workspace.paths()?;
    let mut locks: Vec<&str> =
        paths.iter().map(String::as_str).filter(|path| Path::new(path).ends_with(LOCK)).collect();
    locks.sort_unstable();
    locks.dedup();
    let stale = stale(workspace, &locks)?;
    for lock in &stale {
        println!("locks: {lock}");
    }
    if !stale.is_empty() {
        bail!(
            "{} of {} lock files do not follow their manifests, or cannot be checked",
            stale.len(),
            locks.len()
        );
    }
    Ok(Report::note(format!("{} lock files", locks.len())))
}

/// Which of them cargo would change, each with what cargo says.
fn stale(workspace: &Workspace, locks: &[&str]) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for lock in locks {
        let manifest = workspace.root.join(lock).with_file_name("Cargo.toml");
        // Without the network where what is here is enough, so that a quick look stays one.
        if follows(workspace, &manifest, &["--offline"])?.is_ok() {
            continue;
        }
        if let Err(why) = follows(workspace, &manifest, &[])? {
            stale.push(format!("{lock}: {why}"));
        }
    }
    Ok(stale)
}

fn follows(workspace: &Workspace, manifest: &Path, more: &[&str]) -> Result<Result<(), String>> {
    let output = cargo(workspace)
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(manifest)
        .args(more)
        .output()
        .context("cannot start cargo")?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let error = words.lines().find(|line| line.starts_with("error")).unwrap_or("cargo says nothing of it");
    Ok(Err(error.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &Path, name: &str, more: &str) {
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::write(folder.join("src/lib.rs"), "").unwrap();
        let manifest =
            format!("[package]\nname = \"{name}\"\nedition = \"2024\"\nversion = \"0.1.0\"\n{more}");
        std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    }

    /// As `fuzz/Cargo.lock` did: a package of the product gets a dependency, and the workspace beside it is forgotten.
    #[test]
    fn a_lock_file_that_does_not_follow_its_manifests_is_named() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace { root: root.path().to_path_buf() };
        let at = |folder: &str| root.path().join(folder);
        package(
            &at("beside"),
            "beside",
            "[workspace]\n[dependencies]\nproduct = { path = \"../product\" }\n",
        );
        package(&at("product"), "product", "");
        package(&at("new"), "new", "");
        let write_lock = || {
            let manifest = at("beside/Cargo.toml");
            let mut generate = cargo(&workspace);
            generate.args(["generate-lockfile", "--offline", "--manifest-path"]).arg(manifest);
            assert!(generate.output().unwrap().status.success());
        };
        write_lock();
        assert!(stale(&workspace, &["beside/Cargo.lock"]).unwrap().is_empty());
        let before = std::fs::read(at("beside/Cargo.lock")).unwrap();

        package(&at("product"), "product", "[dependencies]\nnew = { path = \"../new\" }\n");
        let stale_now = stale(&workspace, &["beside/Cargo.lock"]).unwrap();
        assert_eq!(stale_now.len(), 1, "{stale_now:?}");
        assert!(stale_now[0].starts_with("beside/Cargo.lock: error: "), "{stale_now:?}");
        assert_eq!(std::fs::read(at("beside/Cargo.lock")).unwrap(), before);

        write_lock();
        assert!(stale(&workspace, &["beside/Cargo.lock"]).unwrap().is_empty());
    }
}
