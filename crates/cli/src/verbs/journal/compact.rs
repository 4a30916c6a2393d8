//! `sealog journal compact DIR`: folds and drops what can be, the newest segment included; or says what that would be.

use std::fmt::Write as _;

use sealog_journal::{
    CompactionPlan, CompactionTotals, Ignore, Journal, Progress, SegmentPlan, plan_compaction,
};
use serde::Serialize;

use crate::args::Compact;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::opening;
use crate::render::Render;
use crate::report::{self, counted};

#[derive(Serialize)]
struct SegmentBody<'a> {
    first: u64,
    last: u64,
    file: &'a str,
    bytes: u64,
    forgotten_thousandths: u64,
    foldable_thousandths: u64,
    rewritten: bool,
    why: &'a str,
}

#[derive(Serialize)]
struct DryRun<'a> {
    dry_run: bool,
    publishes_segment: bool,
    segments: Vec<SegmentBody<'a>>,
}

#[derive(Serialize)]
struct Answer<'a> {
    dry_run: bool,
    rewrites: u64,
    records_dropped: u64,
    segments_before: u64,
    segments_after: u64,
    bytes_before: u64,
    bytes_after: u64,
    segments: Vec<SegmentBody<'a>>,
}

pub fn run(args: &Compact, render: Render) -> Result<Exit> {
    let journal = |error| Failure::journal(error, &args.dir);
    // Opened once: a key may come from where it can be read only once.
    let opening::Copied { config, backup } =
        opening::copy_for_reading(&args.dir, args.place, &args.key, render)?;
    if backup.is_some() && !args.dry_run {
        return Err(opening::is_backup(&args.dir));
    }
    let (audit, plan) = plan_compaction(&config).map_err(journal)?;
    if !audit.is_sound() {
        return Err(report::damaged(&audit, &[], &args.dir));
    }
    if args.dry_run {
        if audit.tail.is_some() {
            render.note(
                "the journal ends in a write that never finished: compact refuses until the node was started once",
            );
        }
        return dry_run(&plan, render);
    }
    if audit.tail.is_some() {
        // A start that cuts it must also judge what it interrupted: afterwards nobody knows that something was cut.
        return Err(Failure::new(
            Exit::Failed,
            "torn_tail",
            "the journal ends in a write that never finished",
        )
        .next("start the node once, which cuts it and ends what was interrupted; then compact"));
    }
    let writing = |error| without_room(journal(error), &plan);
    let (opened, _) = Journal::open_manual(&config, &mut Ignore).map_err(writing)?;
    let totals = opened.compact_all(&mut |progress| bar(progress, render));
    render.progress("");
    let closed = opened.close();
    let totals = totals.map_err(writing)?;
    closed.map_err(writing)?;
    let (_, after) = plan_compaction(&config).map_err(journal)?;
    if render.json {
        render.object(&answer(&totals, &plan, &after))?;
    } else {
        render.data(&text(&totals, &plan, &after))?;
    }
    Ok(Exit::Success)
}

/// What is rewritten at once may be a single file, and beside that a new segment.
fn without_room(failure: Failure, plan: &CompactionPlan) -> Failure {
    const BESIDE_MIB: u64 = 1;
    if !["full", "disk_full"].contains(&failure.code) {
        return failure;
    }
    let largest = plan.segments.iter().filter(|segment| segment.rewritten).map(|segment| segment.bytes).max();
    let mib = largest.unwrap_or(0).div_ceil(1 << 20) + BESIDE_MIB;
    let what = "there is no room for what replaces the segments";
    Failure { what: what.to_owned(), ..failure }
        .safe("everything acknowledged is durable, and what was rewritten until then stays so")
        .next(format!("make room for {mib} MiB on this disk, then run the same command again"))
}

fn dry_run(plan: &CompactionPlan, render: Render) -> Result<Exit> {
    if render.json {
        let segments = plan.segments.iter().map(body).collect();
        render.object(&DryRun { dry_run: true, publishes_segment: plan.publishes, segments })?;
        return Ok(Exit::Success);
    }
    let going = plan.segments.iter().filter(|segment| segment.rewritten);
    let bytes: u64 = going.clone().map(|segment| segment.bytes).sum();
    let mut text = match going.count() as u64 {
        0 => "nothing to fold or drop\n".to_owned(),
        count => format!("would rewrite {}, {bytes} bytes\n", counted(count, "segment")),
    };
    if plan.publishes {
        text += "would publish a new segment first: the newest one holds something to fold or drop\n";
    }
    for segment in &plan.segments {
        let verb = if segment.rewritten { "rewrite" } else { "keep" };
        line(&mut text, verb, segment);
    }
    render.data(&text)?;
    Ok(Exit::Success)
}

/// The sizes are those of the files as they lie there before and after, the newest one included.
fn text(totals: &CompactionTotals, before: &CompactionPlan, after: &CompactionPlan) -> String {
    let sizes = |plan: &CompactionPlan| {
        format!("{} of {} bytes", counted(plan.segments.len() as u64, "segment"), bytes_of(plan))
    };
    let mut text = match totals.rewrites {
        0 => format!("nothing to fold or drop: {}\n", sizes(after)),
        _ => {
            let dropped = counted(totals.records_dropped, "record");
            format!("{} became {}; {dropped} dropped\n", sizes(before), sizes(after))
        }
    };
    for segment in &after.segments {
        line(&mut text, "keep", segment);
    }
    text
}

fn bytes_of(plan: &CompactionPlan) -> u64 {
    plan.segments.iter().map(|segment| segment.bytes).sum()
}

fn line(text: &mut String, verb: &str, segment: &SegmentPlan) {
    let SegmentPlan { file, bytes, why, .. } = segment;
    let _ = write!(text, "{verb} {file}, {bytes} bytes: {why}");
    if segment.forgotten > 0 || segment.foldable > 0 {
        let percent = |thousandths: u64| thousandths / 10;
        let (forgotten, foldable) = (percent(segment.forgotten), percent(segment.foldable));
        let _ = write!(text, " ({forgotten}% forgotten, {foldable}% to fold)");
    }
    text.push('\n');
}

fn answer<'a>(totals: &CompactionTotals, before: &CompactionPlan, after: &'a CompactionPlan) -> Answer<'a> {
    Answer {
        dry_run: false,
        rewrites: totals.rewrites,
        records_dropped: totals.records_dropped,
        segments_before: before.segments.len() as u64,
        segments_after: after.segments.len() as u64,
        bytes_before: bytes_of(before),
        bytes_after: bytes_of(after),
        segments: after.segments.iter().map(body).collect(),
    }
}

fn body(segment: &SegmentPlan) -> SegmentBody<'_> {
    SegmentBody {
        first: segment.first,
        last: segment.last,
        file: &segment.file,
        bytes: segment.bytes,
        forgotten_thousandths: segment.forgotten,
        foldable_thousandths: segment.foldable,
        rewritten: segment.rewritten,
        why: segment.why,
    }
}

/// Twenty steps; a terminal only.
fn bar(progress: Progress, render: Render) {
    const STEPS: u64 = 20;
    let Progress { done, total } = progress;
    let filled = (done * STEPS).checked_div(total).unwrap_or(STEPS).min(STEPS) as usize;
    let percent = (done * 100).checked_div(total).unwrap_or(100);
    let empty = STEPS as usize - filled;
    render.progress(&format!("compacting [{}{}] {percent}%", "#".repeat(filled), ".".repeat(empty)));
}
