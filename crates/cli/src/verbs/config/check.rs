//! `sealog config check FILE`: would a node take it?

use serde::Serialize;

use crate::args::configuring::Check;
use crate::config::NodeConfig;
use crate::exit::Exit;
use crate::failure::{Result, shown};
use crate::render::Render;
use crate::report::counted;

#[derive(Serialize)]
struct Answer {
    file: String,
    ok: bool,
    providers: u64,
    /// What requests will fail for until it is mended; a node starts all the same.
    notes: Vec<String>,
}

pub fn run(args: &Check, render: Render) -> Result<Exit> {
    let config = NodeConfig::read(Some(args.file()))?;
    let providers = config.providers.len() as u64;
    let notes: Vec<String> = config.absent_keys.iter().map(|absent| absent.words()).collect();
    if render.json {
        render.object(&Answer { file: shown(args.file()), ok: true, providers, notes })?;
    } else {
        let what = if config.mock_only {
            "no provider, so the mock answers".to_owned()
        } else {
            counted(providers, "provider")
        };
        render.data(&format!("{}: ok, {what}\n", shown(args.file())))?;
        for note in notes {
            render.note(&note);
        }
    }
    Ok(Exit::Success)
}
