//! A word for a member that is not known: which known one was probably meant. The known names are ours; what the file
//! says is never repeated.

use super::UNSUPPORTED;

/// Why a name is refused, with the known name that is nearest to it, if one is near.
pub(super) fn unsupported<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        // A key in the file itself: say where it goes.
        _ if name == "api_key" => {
            format!("{UNSUPPORTED}; api_key_env or api_key_file names where the key is")
        }
        Some(meant) => format!("{UNSUPPORTED}; is {meant} meant?"),
        None => UNSUPPORTED.to_owned(),
    }
}

/// At most a third of the longer name may differ. Of several equally near ones the first.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LENGTH_MAX: usize = 40;
    if name.len() > LENGTH_MAX {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_").into_bytes();
    let name = plain(name);
    let near = known.into_iter().filter_map(|known| {
        let steps = steps(&name, &plain(known));
        let allowed = name.len().max(known.len()) / 3;
        (steps <= allowed && name.len() > 1).then_some((steps, known))
    });
    near.min_by_key(|(steps, _)| *steps).map(|(_, known)| known)
}

/// How many letters have to be put in, taken out or changed.
fn steps(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.iter().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (place, other) in to.iter().enumerate() {
            let change = corner + usize::from(letter != other);
            corner = row[place + 1];
            row[place + 1] = change.min(row[place] + 1).min(corner + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["providers", "store", "max_active_executions", "api_key_env"];

    #[track_caller]
    fn check(name: &str, meant: Option<&str>) {
        assert_eq!(nearest(name, KNOWN), meant, "{name}");
    }

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        check("provider", Some("providers"));
        check("Providers", Some("providers"));
        check("max-active-executions", Some("max_active_executions"));
        check("max_active_execution", Some("max_active_executions"));
        check("stor", Some("store"));
        check("api_key", None);
        check("api_key_en", Some("api_key_env"));
        check("server", None);
        check("s", None);
        check("", None);
        check(&"providers".repeat(20), None);
    }

    #[test]
    fn the_words_never_repeat_what_the_file_says() {
        assert_eq!(unsupported("provider", KNOWN), format!("{UNSUPPORTED}; is providers meant?"));
        assert_eq!(unsupported("sk-hunter2", KNOWN), UNSUPPORTED);
        assert!(unsupported("api_key", KNOWN).starts_with(&format!("{UNSUPPORTED}; api_key_env or ")));
    }
}
