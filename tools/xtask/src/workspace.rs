//! What the checks know of the tree: its root, its files, and cargo's metadata about its packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cargo::cargo;

/// The checked-out tree.
pub struct Workspace {
    pub root: PathBuf,
}

/// One text file of the tree. `path` is relative to the root, with `/` between its parts.
#[derive(Clone, Debug)]
pub struct TextFile {
    pub path: String,
    pub text: String,
}

impl TextFile {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

impl Workspace {
    pub fn find() -> Result<Self> {
        // Cargo says where it found the manifest; the path of the build could be that of another clone.
        let here = std::env::var_os("CARGO_MANIFEST_DIR").context("start it as `cargo xtask`")?;
        let root = Path::new(&here).ancestors().nth(2).context("xtask lies two folders below the root")?;
        Ok(Self { root: root.to_path_buf() })
    }

    /// Every file that git tracks or would add, relative to the root; one that is deleted may still be named.
    pub fn paths(&self) -> Result<Vec<String>> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output()
            .context("cannot start git")?;
        if !output.status.success() {
            bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let paths = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(paths.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }

    /// Every text file of [`Workspace::paths`]; what is not UTF-8 is left out.
    pub fn text_files(&self) -> Result<Vec<TextFile>> {
        let mut files = Vec::new();
        for path in self.paths()? {
            // A file that is deleted but still in the index has nothing to check.
            let Ok(bytes) = std::fs::read(self.root.join(&path)) else { continue };
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(TextFile { path, text });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok(files)
    }

    /// `cargo metadata` for the whole workspace with its dependencies.
    pub fn metadata(&self) -> Result<Value> {
        let output = cargo(self)
            .args(["metadata", "--format-version", "1", "--locked"])
            .output()
            .context("cannot start cargo")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// Cargo's target folder.
pub fn target_folder(workspace: &Workspace) -> Result<PathBuf> {
    let metadata = workspace.metadata()?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
    Ok(PathBuf::from(folder))
}
