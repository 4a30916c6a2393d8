//! Anchors: matches, contained, behind, diverged (JB-10, R18 with rollback, R22).

use sealog_disk::sim::SimDisk;

use super::backup::{fill, take, view};
use super::setup::Bench;
use crate::{Anchor, Anchoring, Audit, Config, Standing, audit};

fn look(config: &Config, sought: Option<Anchor>) -> (Audit, Anchoring) {
    audit(config, &mut || Anchoring::new(sought)).unwrap()
}

fn here(bench: &Bench) -> Anchor {
    let (audit, anchoring) = look(&bench.config, None);
    assert_eq!(anchoring.standing(&audit), None);
    anchoring.here(&audit)
}

fn standing(bench: &Bench, anchor: Anchor) -> Standing {
    let (audit, anchoring) = look(&bench.config, Some(anchor));
    assert!(audit.is_sound(), "{audit:?}");
    anchoring.standing(&audit).unwrap()
}

#[test]
fn jb_10_an_anchor_reads_back_from_its_text_and_nothing_else_does() {
    let bench = Bench::new();
    fill(&bench.open().unwrap(), 1..2, 10);
    let anchor = here(&bench);
    let text = anchor.to_string();
    assert!(text.starts_with("sealog-anchor-1 store 0303") && anchor.sequence == 3, "{text}");
    assert_eq!(Anchor::parse(&text), Some(anchor));
    assert_eq!(Anchor::parse(&format!("  {}\n", text.replace(' ', "\t "))), Some(anchor));
    for other in [
        String::new(),
        format!("{text} more"),
        text.replace("-1", "-2"),
        text.replace("chain ", "chain 0"),
        text.replace("epoch ", "epoch +"),
        text.replace("sequence 3", "sequence 99999999999999999999"),
        text[..text.len() - 1].to_owned(),
        format!("{}\u{e9}", &text[..text.len() - 2]),
    ] {
        assert_eq!(Anchor::parse(&other), None, "{other}");
    }
}

#[test]
fn jb_10_a_journal_that_went_on_contains_its_anchors_and_an_older_copy_is_behind() {
    let bench = Bench::new();
    let empty = here(&bench);
    assert_eq!(standing(&bench, empty), Standing::Matches);
    let mut copies = Vec::new();
    let mut anchors = vec![empty];
    for round in 0..4u8 {
        copies.push(bench.disk.fork());
        let opened = bench.open().unwrap();
        fill(&opened, round * 9 + 1..round * 9 + 8, 3000);
        // Beside the writer the newest group has no evidence yet.
        let live = here(&bench);
        assert!(live.sequence < opened.journal.durable_sequence());
        opened.journal.close().unwrap();
        anchors.extend([live, here(&bench)]);
    }
    let newest = anchors[anchors.len() - 1];
    assert_eq!(standing(&bench, newest), Standing::Matches);
    for anchor in &anchors[..anchors.len() - 1] {
        assert_eq!(standing(&bench, *anchor), Standing::Contained, "{anchor}");
    }
    for (round, copy) in copies.into_iter().enumerate() {
        let copy = Bench::on(copy, 70);
        for (at, anchor) in anchors.iter().enumerate() {
            let expected = match at.cmp(&(2 * round)) {
                std::cmp::Ordering::Less => Standing::Contained,
                std::cmp::Ordering::Equal => Standing::Matches,
                std::cmp::Ordering::Greater => Standing::Behind,
            };
            assert_eq!(standing(&copy, *anchor), expected, "round {round}, anchor {at}");
        }
        // Set back and gone on: what came after is not here and never will be.
        let opened = copy.open().unwrap();
        fill(&opened, 100..140, 3000);
        opened.journal.close().unwrap();
        for anchor in &anchors[2 * round + 1..] {
            assert_eq!(standing(&copy, *anchor), Standing::Diverged, "round {round}, {anchor}");
        }
    }
}

#[test]
fn jb_10_a_forged_anchor_diverges_and_one_of_another_journal_is_named() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..4, 100);
    opened.journal.close().unwrap();
    let anchor = here(&bench);
    assert_eq!(standing(&bench, Anchor { store_id: [8; 16], ..anchor }), Standing::OtherJournal);
    for forged in [
        Anchor { chain: [1; 16], sequence: 2, ..anchor },
        Anchor { lineage: [1; 16], chain: [1; 16], ..anchor },
        Anchor { epoch: 0, lineage: [1; 16], chain: [1; 16], sequence: 99, ..anchor },
    ] {
        assert_eq!(standing(&bench, forged), Standing::Diverged, "{forged}");
    }
}

#[test]
fn jb_10_a_backup_stands_to_an_anchor_as_a_journal_does() {
    let bench = Bench::new();
    let target = SimDisk::new();
    let opened = bench.open().unwrap();
    fill(&opened, 1..4, 100);
    take(&bench, &target).unwrap();
    let old = here(&bench);
    fill(&opened, 4..6, 100);
    opened.journal.close().unwrap();
    let new = here(&bench);
    let (_, config) = view(&bench, &target).unwrap().unwrap();
    for (anchor, expected) in [(old, Standing::Matches), (new, Standing::Behind)] {
        let (audit, anchoring) = look(&config, Some(anchor));
        assert_eq!(anchoring.standing(&audit), Some(expected));
    }
}
