//! `sealog journal verify DIR`: reads every byte, tag, link, event and result, and says what it came to.

use std::fmt::Write as _;

use sealog_journal::{Anchoring, audit};
use serde::Serialize;

use crate::anchors;
use crate::args::Verify;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown, with_damage};
use crate::opening;
use crate::render::Render;
use crate::report::{self, GapBody, KeyringBody, ProblemBody, TailBody, Verdict, counted};
use crate::survey::Survey;

/// Problems that the text form prints; `--json` lists all.
const LINES_MAX: usize = 20;

#[derive(Serialize)]
struct Answer {
    verdict: Verdict,
    store_id: String,
    live: bool,
    segments: u64,
    frames: u64,
    records: u64,
    executions: u64,
    last_sequence: u64,
    keyring: KeyringBody,
    tail: Option<TailBody>,
    problems: Vec<ProblemBody>,
    gaps: Vec<GapBody>,
    /// How the journal stands to the anchor that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor: Option<&'static str>,
}

pub fn run(args: &Verify, render: Render) -> Result<Exit> {
    let copy = opening::copy_for_reading(&args.dir, args.place, &args.key, render)
        .map_err(|failure| not_again(failure, args))?;
    let journal = |error| not_again(Failure::journal(error, &args.dir), args);
    let sought = args.anchor.as_deref().map(anchors::read).transpose()?;
    let mut sinks = || (Survey::checking(), Anchoring::new(sought));
    let (mut audit, (mut survey, anchoring)) = audit(&copy.config, &mut sinks).map_err(journal)?;
    let standing = anchoring.standing(&audit);
    if let Some(backup) = &copy.backup {
        audit.problems.extend(backup.check_files().map_err(journal)?);
    }
    if !audit.gaps.is_empty() {
        survey.explain_by_gaps();
    }
    let verdict = Verdict::of(&audit, &survey.findings);
    let answer = Answer {
        verdict,
        store_id: report::hex(&audit.store_id),
        live: audit.live,
        segments: audit.segments.len() as u64,
        frames: audit.segments.iter().map(|segment| segment.frames).sum(),
        records: audit.segments.iter().map(|segment| segment.records).sum(),
        executions: survey.executions.len() as u64,
        last_sequence: audit.last_sequence,
        keyring: KeyringBody::new(&audit),
        tail: audit.tail.as_ref().map(TailBody::new),
        problems: report::problem_bodies(&audit.problems, &survey.findings),
        gaps: report::gap_bodies(&audit.gaps),
        anchor: standing.map(anchors::word),
    };
    if render.json {
        render.object(&answer)?;
    } else {
        render.data(&text(&answer))?;
    }
    for remark in report::remarks(&audit) {
        render.note(&remark);
    }
    match verdict {
        Verdict::Sound | Verdict::TornTail => anchors::judge(standing, &args.dir, copy.backup.is_some())?,
        // Damage is the worse news, and may be why the anchor is not found.
        Verdict::Damaged => {}
    }
    match verdict {
        Verdict::Sound => Ok(Exit::Success),
        Verdict::TornTail => {
            render.note("the next start copies the torn tail to quarantine/ and cuts it");
            Ok(Exit::Success)
        }
        Verdict::Damaged => Err(report::damaged(&audit, &survey.findings, &args.dir)),
    }
}

/// What stops this verb is not found out by running it once more.
fn not_again(failure: Failure, args: &Verify) -> Failure {
    match failure.next.starts_with("sealog journal verify ") {
        true => failure.next(with_damage(&shown(&args.dir))),
        false => failure,
    }
}

fn text(answer: &Answer) -> String {
    let word = match answer.verdict {
        Verdict::Sound => "sound",
        Verdict::TornTail => "sound up to a torn tail",
        Verdict::Damaged => "damaged",
    };
    let Answer { store_id, segments, frames, records, executions, last_sequence, .. } = answer;
    let mut text = format!(
        "{word}: journal {store_id}, {}, {}, {}, {}, last sequence {last_sequence}\n",
        counted(*segments, "segment"),
        counted(*frames, "frame"),
        counted(*records, "record"),
        counted(*executions, "execution")
    );
    if let Some(tail) = &answer.tail {
        let _ = writeln!(text, "{}", tail.line());
    }
    for problem in answer.problems.iter().take(LINES_MAX) {
        let _ = writeln!(text, "damaged: {}", problem.line());
    }
    if answer.problems.len() > LINES_MAX {
        let _ = writeln!(text, "damaged: {} more (--json lists all)", answer.problems.len() - LINES_MAX);
    }
    for gap in &answer.gaps {
        let _ = writeln!(text, "gap: {}", gap.line());
    }
    if let Some(word) = answer.anchor {
        let _ = writeln!(text, "anchor: {word}");
    }
    text
}
