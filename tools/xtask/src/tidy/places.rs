//! Tracked files that name a machine's folders or a package registry's hosts: neither belongs to the product.

use super::{Finding, Source};
use crate::workspace::TextFile;

/// Folders of one machine. Put together here, so that this file does not name them.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];
/// Hosts that serve packages.
const HOSTS: &[&str] = &[
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("://crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("deb.debian", ".org"),
    concat!("rubygems", ".org"),
];

pub fn check(files: &[TextFile], _sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A lockfile names its registry by design, and cargo writes it.
    for file in files.iter().filter(|file| file.name() != "Cargo.lock") {
        for (index, line) in file.text.lines().enumerate() {
            let folders = FOLDERS.iter().filter(|folder| names_folder(line, folder));
            let hosts = HOSTS.iter().filter(|host| line.contains(**host));
            findings.extend(
                folders.map(|folder| Finding::new(file, index + 1, format!("names a machine's {folder}"))),
            );
            findings
                .extend(hosts.map(|host| Finding::new(file, index + 1, format!("names the host {host}"))));
        }
    }
    findings
}

/// Whether the folder is named as the beginning of a path, not as a part inside a longer one.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::super::findings;
    use super::*;

    #[test]
    fn machine_folders_are_found_at_the_start_of_a_path() {
        for folder in FOLDERS {
            let line = format!("see {folder}notes.md\n");
            assert_eq!(findings(check, &[("a.md", &line)]), [format!("a.md:1: names a machine's {folder}")]);
            assert_eq!(findings(check, &[("a.md", &format!("crates{folder}mod.rs"))]).len(), 0);
        }
    }

    #[test]
    fn registry_hosts_are_found_outside_lockfiles() {
        for host in HOSTS {
            let line = format!("ok\nhttps{host}/x\n");
            assert_eq!(findings(check, &[("x.toml", &line)]), [format!("x.toml:2: names the host {host}")]);
            assert_eq!(findings(check, &[("fuzz/Cargo.lock", &line)]).len(), 0);
        }
    }
}
