//! The step `deny`: licences, bans and sources of everything in the lockfile, by `deny.toml`.
//!
//! Advisories are checked only where `ADVISORY_ROOT` names a copy of the advisory database (the folder that holds
//! its `crates`); elsewhere the step says that they were not. Never reaches out for a database by itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::cargo;
use crate::process::run;
use crate::steps::Report;
use crate::workspace::Workspace;

/// The folder name that cargo-deny derives from the default address of the database.
const DATABASE: &str = "advisory-db-3157b0e258782691";

pub fn step(workspace: &Workspace) -> Result<Report> {
    run(Command::new("cargo-deny").arg("--version"))
        .context("cargo-deny is missing; `.ci/run` installs it")?;
    // cargo-deny itself runs offline, so that every crate must be here first.
    run(cargo(workspace).args(["fetch", "--locked"]))?;
    let mut check = Command::new("cargo-deny");
    check.args(["--offline", "--locked", "check"]).current_dir(&workspace.root);
    let Some(copy) = std::env::var_os("ADVISORY_ROOT").map(PathBuf::from) else {
        run(check.args(["bans", "licenses", "sources"]))?;
        return Ok(Report::note(
            "bans, licences and sources; advisories were NOT checked (no ADVISORY_ROOT)",
        ));
    };
    let staged = std::env::temp_dir().join(format!("sealog-advisories-{}", std::process::id()));
    let outcome = stage(&copy, &staged.join(DATABASE)).and_then(|newest| {
        run(check.env("ADVISORY_ROOT", &staged))?;
        Ok(newest)
    });
    // Left behind it would be taken for a fresh copy by whoever finds it.
    let removed = std::fs::remove_dir_all(&staged);
    let newest = outcome?;
    removed?;
    Ok(Report::note(format!("bans, licences, sources and advisories; the newest advisory is of {newest}")))
}

/// Makes the git clone that cargo-deny insists on out of a plain copy, and returns the date of its newest advisory.
fn stage(copy: &Path, database: &Path) -> Result<String> {
    let crates = copy.join("crates");
    if !crates.is_dir() {
        bail!("ADVISORY_ROOT has no folder `crates`");
    }
    let mut newest = String::new();
    for folder in std::fs::read_dir(crates)? {
        let folder = folder?;
        let target = database.join("crates").join(folder.file_name());
        std::fs::create_dir_all(&target)?;
        for advisory in std::fs::read_dir(folder.path())? {
            let advisory = advisory?;
            let text = std::fs::read_to_string(advisory.path())?;
            newest = newest.max(date(&text).unwrap_or_default().to_owned());
            std::fs::write(target.join(advisory.file_name()), text)?;
        }
    }
    if newest.is_empty() {
        bail!("ADVISORY_ROOT holds no advisory");
    }
    let git = |args: &[&str]| run(Command::new("git").args(args).current_dir(database));
    git(&["init", "--quiet"])?;
    git(&["add", "--all"])?;
    let author = ["-c", "user.name=sealog", "-c", "user.email=sealog@localhost"];
    git(&[&author[..], &["commit", "--quiet", "--message", "A copy of the advisory database"]].concat())?;
    Ok(newest)
}

/// The day in an advisory's line `date = "2026-08-21"`.
fn date(advisory: &str) -> Option<&str> {
    advisory.lines().find_map(|line| line.strip_prefix("date = \"")).and_then(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_an_advisory_is_read() {
        assert_eq!(date("[advisory]\nid = \"X\"\ndate = \"2026-08-21\"\n"), Some("2026-08-21"));
        assert_eq!(date("no front matter"), None);
    }

    #[test]
    fn a_folder_without_advisories_is_refused() {
        let nowhere = Path::new("no such folder");
        assert!(stage(nowhere, nowhere).is_err());
    }
}
