//! The real binary under SIGKILL: a short campaign of crashbox. The long one is a command of its own, see
//! `tools/crashbox/README.md`.

use crashbox::campaign::Campaign;
use crashbox::judge::Ending;
use sealog_tests::binary;

#[test]
fn twenty_five_kills_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let campaign = Campaign {
        binary: binary("sealog"),
        kills: 25,
        seed: 20,
        clients: 6,
        dir: dir.path().join("campaign"),
        life_ms_max: 400,
        progress: false,
    };
    let summary = campaign.run().unwrap();
    let right = summary.findings.is_empty();
    if !right {
        // Evidence is worth more than a tidy directory.
        panic!("{}\nkept: {}", summary.text(), dir.keep().display());
    }
    assert_eq!(summary.kills, 25);
    // A campaign that met nothing would prove nothing.
    for (what, count) in [
        ("acknowledged", summary.acknowledged),
        ("delivered before a kill", summary.delivered_before_end),
        ("provider calls", summary.provider_calls),
        ("kills during start", summary.kills_at_start),
        ("kills behind a SIGTERM", summary.kills_at_stop),
        ("kills during compaction", summary.kills_at_compaction),
        ("succeeded", summary.ended(Ending::Succeeded)),
        ("interrupted", summary.ended(Ending::Interrupted)),
    ] {
        assert!(count > 0, "{what}: none\n{}", summary.text());
    }
    print!("{}", summary.text());
}
